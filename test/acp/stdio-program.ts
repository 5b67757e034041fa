// A program that speaks over its own stdio. It ends by running out of work, or at once after the connection with --exit.
import { createConnection } from '../../src/acp/connection.ts';
import { anyNotification, anyRequest } from './any-method.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const connection = createConnection(process.stdin, process.stdout, log, { graceMs: 300 });
connection.onRequest(anyRequest('echo'), (params) => ({ params }));
connection.onRequest(anyRequest('flood'), async () => {
  for (let n = 0; ; n++) {
    await connection.notify(anyNotification('note'), { text: 'x'.repeat(10_000) });
    // By now more was written than a pipe holds.
    if (n === 20) process.stderr.write('flooding\n');
  }
});
connection.onRequest(
  anyRequest('hang'),
  (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
);
process.once('SIGTERM', () => connection.hangUp('SIGTERM'));
connection.listen();
await connection.closed;
if (process.argv.includes('--exit')) process.exit(0);
