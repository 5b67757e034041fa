// The physical limit of a load, in one process: read the file, parse every line, keep the messages.
import fs from 'node:fs';

const start = performance.now();
const bytes = fs.readFileSync(process.argv[2]);
const read = performance.now();
const messages = [];
let records = 0;
for (let from = 0; from < bytes.length; ) {
  let end = bytes.indexOf(10, from);
  if (end === -1) end = bytes.length;
  if (end > from) {
    const record = JSON.parse(bytes.toString('utf8', from, end));
    records++;
    if (record.message) messages.push(record.message);
  }
  from = end + 1;
}
const parsed = performance.now();
console.log(
  JSON.stringify({
    readMs: read - start,
    totalMs: parsed - start,
    records,
    kept: messages.length,
    // Not resourceUsage(): its maximum is inherited from the process that forked.
    rssMB: +/VmHWM:\s+(\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1] / 1024,
  }),
);
