// Writes the tables of checks into docs/CONFORMANCE.md, behind its last heading.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HEADING = '## The checks\n\n';
const page = fileURLToPath(new URL('../docs/CONFORMANCE.md', import.meta.url));
const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const { stdout, status } = spawnSync(process.execPath, [cli, 'conformance', '--list', '--markdown'], {
  encoding: 'utf8',
});
if (status !== 0) throw new Error('the kit does not list its checks');
const text = readFileSync(page, 'utf8');
writeFileSync(page, text.slice(0, text.indexOf(HEADING) + HEADING.length) + stdout);
