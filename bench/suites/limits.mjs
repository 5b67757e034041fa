// What this machine can do without any agent.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { runCommand, runLimit } from '../lib/bench.mjs';
import { transcriptOf } from '../lib/transcripts.mjs';

const WRITER = fileURLToPath(new URL('../limits/writer.mjs', import.meta.url));
const PIPES = [
  { length: 200, how: 'line', bytes: 8e6 },
  { length: 200, how: 'batch', bytes: 60e6 },
  { length: 2_000, how: 'line', bytes: 60e6 },
  { length: 2_000, how: 'batch', bytes: 60e6 },
];

export async function limitsSuite(bench) {
  const table = bench.table('Physical limits');
  const count = Math.max(...bench.options.counts);
  const { file, bytes } = transcriptOf(bench, count, false);
  const rate = (ms) => ({ ms, rate: bytes / 1e3 / ms });
  const size = `${(bytes / 1e6).toFixed(0)} MB`;
  for (let round = 0; round < bench.options.runs; round++) {
    table.add('node -e 0', { ms: (await runCommand([process.execPath, '-e', '0'], bench.cwd)).ms });
    table.add(`wc -l, ${size}`, rate((await runCommand(['wc', '-l', file], bench.cwd)).ms));
    const limit = await runLimit(bench, 'readparse.mjs', file);
    table.add(`read, ${size}`, rate(limit.readMs));
    table.add(`read + JSON.parse, ${count} lines`, rate(limit.totalMs));
    const fsync = await runLimit(bench, 'fsync.mjs', `${bench.work}/fsync.probe`);
    table.add('append 300 B + fdatasync', { ms: fsync.medianMs });
    for (const pipe of PIPES) {
      const unit = pipe.how === 'line' ? 'line' : '64 KB';
      table.add(`pipe, ${pipe.length} B lines, a write per ${unit}`, await drainPipe(pipe));
    }
  }
  bench.say(
    table.markdown([
      { key: 'ms', label: 'ms', spread: true },
      { key: 'rate', label: 'MB/s' },
      { key: 'lines', label: 'k lines/s' },
    ]),
  );
  return table;
}

function drainPipe({ length, how, bytes }) {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'inherit'];
    const child = spawn(process.execPath, [WRITER, String(bytes), String(length), how], { stdio });
    let [received, lines, start] = [0, 0, 0];
    child.stdout.on('data', (chunk) => {
      start ||= performance.now();
      received += chunk.length;
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++;
    });
    child.on('error', reject);
    child.on('close', () => {
      const ms = performance.now() - start;
      resolve({ ms, rate: received / 1e3 / ms, lines: lines / ms });
    });
  });
}
