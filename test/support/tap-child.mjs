// Stands between the daemon and its child, and notes every frame in TAP_LOG, a JSON line each.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const child = spawn(process.execPath, [process.env.TAP_CHILD, ...process.argv.slice(2)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
appendFileSync(
  process.env.TAP_LOG,
  `${JSON.stringify({ dir: 'start', pid: process.pid, argv: process.argv.slice(2) })}\n`,
);

function pass(from, to, dir) {
  const lines = createInterface({ input: from });
  lines.on('line', (line) => {
    appendFileSync(process.env.TAP_LOG, `${JSON.stringify({ dir, frame: JSON.parse(line) })}\n`);
    to.write(`${line}\n`);
  });
  lines.on('close', () => to.end());
}

pass(process.stdin, child.stdin, 'to-child');
pass(child.stdout, process.stdout, 'from-child');
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
  process.stdin.destroy();
});
