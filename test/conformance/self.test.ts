import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { run } from '../../src/conformance/runner.ts';
import { SUITES } from '../../src/conformance/suites/all.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const COMMAND = [process.execPath, CLI, '--acp', '--auth-type', 'gemini', '--restore-ask-user-question'];

/** Of the restore suite one check of a kind; `npm run conformance`, a step of CI, runs them all. */
const OF_RESTORE = [
  'RESTORE-LOAD-12',
  'RESTORE-ASK-1',
  'RESTORE-ASK-2',
  'RESTORE-ASK-3',
  'RESTORE-ASK-13',
  'RESTORE-DECLINE-1',
  'RESTORE-UNATTENDED-1',
  'RESTORE-UNATTENDED-11',
  'RESTORE-ORDER-1',
  'RESTORE-ORDER-5',
];

test('our own child passes the kit', async () => {
  const acp = SUITES.find(({ id }) => id === 'acp')?.checks.map(({ id }) => id) ?? [];
  const target = { command: COMMAND, env: {} };
  const { rows } = await run({ target, suites: SUITES, only: [...acp, ...OF_RESTORE], patience: 20_000, jobs: 4 });
  // It advertises every session method, so none is left to be refused.
  const others = rows.filter(({ id, status }) => status !== 'pass' && id !== 'ACP-INIT-6');
  expect(others).toEqual([]);
  expect(rows).toHaveLength(acp.length + OF_RESTORE.length);
}, 120_000);
