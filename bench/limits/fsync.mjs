// What a durable append costs on this disk: 1,200 bytes appended after a pause, then fdatasync; prints the median of 10
// in ms. Without the pause the disk is still busy with the append before and answers many times faster than to one that
// comes alone, as an answer does.
import fs from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const file = process.argv[2];
const line = `${JSON.stringify({ text: 'x'.repeat(1180) })}\n`;
const times = [];
for (let i = 0; i < 10; i++) {
  await pause(150);
  const start = performance.now();
  const fd = fs.openSync(file, 'a');
  fs.writeSync(fd, line);
  await new Promise((resolve) => fs.fdatasync(fd, resolve));
  fs.closeSync(fd);
  times.push(performance.now() - start);
}
fs.rmSync(file);
times.sort((a, b) => a - b);
console.log(JSON.stringify({ medianMs: times[times.length >> 1] }));
