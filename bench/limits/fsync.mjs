// What a durable append costs on this disk: 300 bytes appended, then fdatasync; prints the median of 20 in ms.
import fs from 'node:fs';

const file = process.argv[2];
const line = `${JSON.stringify({ text: 'x'.repeat(280) })}\n`;
const fd = fs.openSync(file, 'a');
const times = [];
for (let i = 0; i < 20; i++) {
  const start = performance.now();
  fs.writeSync(fd, line);
  fs.fdatasyncSync(fd);
  times.push(performance.now() - start);
}
fs.closeSync(fd);
fs.rmSync(file);
times.sort((a, b) => a - b);
console.log(JSON.stringify({ medianMs: times[times.length >> 1] }));
