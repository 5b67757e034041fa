import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../../src/conformance/runner.ts';
import type { Findings, Row } from '../../src/conformance/suite.ts';
import { SUITES } from '../../src/conformance/suites/all.ts';
import { FAULTS } from '../fixtures/daemons/faults.mjs';

const DAEMON = join(import.meta.dirname, '../fixtures/daemons/faulty.mjs');
/** It lacks nothing; that is found out elsewhere. */
const FINDINGS: Findings = { initialized: undefined, tools: [], lacks: new Map() };

type Caught = readonly [fault: string, check: string, reason: RegExp];

/** Faults that do not get into each other's way, for one daemon; the check that has to catch each, and what it says. */
const TOGETHER: readonly (readonly Caught[])[] = [
  [
    ['answers-told', 'DAEMON-ASK-4', /the answer is told to everybody/],
    ['client-made-up', 'DAEMON-LOAD-7', /a turn runs after the load/],
    ['cancel-is-200', 'DAEMON-PROMPT-4', /status is 200, not 204/],
    ['exit-3', 'DAEMON-STOP-1', /how it ended is \{"code":3/],
    ['hint-leaks', 'DAEMON-LOAD-2', /the answer has qwen\.daemon\.restore/],
    ['host-open', 'DAEMON-GUARD-1', /status is 200, not 403/],
    ['ids-repeat', 'DAEMON-EVENTS-1', /not above the one before/],
    ['late-id-differs', 'DAEMON-EVENTS-6', /requestId is "11111111/],
    ['origin-open', 'DAEMON-GUARD-2', /status is 200, not 403/],
    ['unknown-is-500', 'DAEMON-SESSION-6', /status is 500, not 404/],
  ],
  [
    ['same-request-id', 'DAEMON-LOAD-1', /the request id is the old one/],
    ['malformed-taken', 'DAEMON-VOTE-4', /status is 200, not 400/],
    ['malformed-taken', 'DAEMON-VOTE-13', /status is 200, not 400/],
    ['late-vote-taken', 'DAEMON-VOTE-2', /status is 200, not 404/],
    ['late-vote-taken', 'DAEMON-VOTE-3', /statuses is \[200,200\]/],
  ],
];

async function rowsOf(faults: readonly string[], only: readonly string[]): Promise<readonly Row[]> {
  const args = ['--auth-type gemini --restore-ask-user-question', ...faults.map((fault) => `--fault ${fault}`)];
  const target = { command: [], env: {}, daemon: { serve: [process.execPath, DAEMON, ...args].join(' ') } };
  return (await run({ target, suites: SUITES, only, findings: FINDINGS, patience: 20_000, jobs: 4 })).rows;
}

test('the daemon has no fault that no check is said to catch', () => {
  expect(FAULTS.filter((fault) => !TOGETHER.flat().some(([name]) => name === fault))).toEqual([]);
});

test.each(TOGETHER.map((caught) => [caught.map(([fault]) => fault).join(', '), caught] as const))(
  'planted faults are caught, each by the check that is about it: %s',
  async (_, caught) => {
    const faults = new Set(caught.map(([fault]) => fault));
    const checks = caught.map(([, check]) => check);
    const rows = await rowsOf([...faults], checks);
    for (const [, check, reason] of caught) {
      const row = rows.find(({ id }) => id === check);
      expect(row).toMatchObject({ id: check, status: 'fail', reason: expect.stringMatching(reason) });
    }
  },
  60_000,
);

test('without faults the same checks pass', async () => {
  const checks = TOGETHER.flat().map(([, check]) => check);
  const rows = await rowsOf([], checks);
  expect(rows.filter(({ status }) => status !== 'pass')).toEqual([]);
  expect(rows).toHaveLength(checks.length);
}, 60_000);
