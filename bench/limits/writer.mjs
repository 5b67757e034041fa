// Writes `bytes` of JSON lines of `length` characters to stdout, one write per line or per 64 KB, and waits for drain.
const [bytes, length] = process.argv.slice(2).map(Number);
const frame = { jsonrpc: '2.0', method: 'session/update', params: { t: 'x'.repeat(Math.max(1, length - 60)) } };
const line = `${JSON.stringify(frame)}\n`;
const batch = process.argv[4] === 'line' ? line : line.repeat(Math.max(1, Math.floor(65_536 / line.length)));

let left = bytes;
function write() {
  while (left > 0) {
    left -= batch.length;
    if (!process.stdout.write(batch)) {
      process.stdout.once('drain', write);
      return;
    }
  }
}
write();
