import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tempFolder } from '../support/temp.ts';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
const caches = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.cache'));

test.each<[string, (file: string) => void, string[]]>([
  ['as it was built', () => {}, []],
  ['with other flags than the cache was made for', () => {}, ['--expose-gc', '--max-old-space-size=512']],
  ['without a code cache', (file) => rmSync(file), []],
  ['with a code cache that is junk', (file) => writeFileSync(file, 'junk'.repeat(1000)), []],
  ['with an empty code cache', (file) => writeFileSync(file, ''), []],
])('[CLI-1, PF-1] the executable starts %s', (_, change, flags) => {
  const folder = tempFolder();
  cpSync(DIST, folder, { recursive: true });
  for (const name of caches(folder)) change(join(folder, name));
  const request = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } };
  const out = execFileSync(process.execPath, [...flags, join(folder, 'cli.js'), '--acp'], {
    input: `${JSON.stringify(request)}\n`,
    encoding: 'utf8',
  });
  expect(JSON.parse(out)).toMatchObject({ id: 1, result: { protocolVersion: 1 } });
});

test('[PF-1] the build makes a code cache', () => {
  expect(caches(DIST).length).toBeGreaterThan(0);
});
