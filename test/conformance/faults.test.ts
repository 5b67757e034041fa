import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Target } from '../../src/conformance/context.ts';
import { probe } from '../../src/conformance/probe.ts';
import { run } from '../../src/conformance/runner.ts';
import type { Findings, Row } from '../../src/conformance/suite.ts';
import { SUITES } from '../../src/conformance/suites/all.ts';
import { FAULTS } from '../fixtures/agents/faulty/faults.mjs';

const AGENT = join(import.meta.dirname, '../fixtures/agents/faulty/agent.mjs');
/** In ms. What only silence shows is waited for so long, all else as long as a busy machine may need. */
const [SILENCE, PATIENCE] = [4_000, 20_000];

/** Each fault, the check that has to catch it, and what it has to say. */
const CAUGHT: readonly (readonly [fault: string, check: string, reason: RegExp])[] = [
  ['banner', 'ACP-INIT-7', /first line on stdout is another/],
  ['noise', 'ACP-FRAME-6', /it is no JSON object/],
  ['wrong-jsonrpc', 'ACP-INIT-1', /jsonrpc is not "2.0"/],
  ['ids-as-text', 'ACP-CALL-8', /did not come/],
  ['chunk-decoding', 'ACP-FRAME-1', /sent in pieces did not come/],
  ['no-crlf', 'ACP-FRAME-3', /did not come/],
  ['short-lines', 'ACP-FRAME-5', /of 3 MB did not come/],
  ['dies-of-junk', 'ACP-CALL-7', /it ended \(exit code 3\)/],
  ['one-at-a-time', 'ACP-CALL-11', /session\/new did not come/],
  ['unknown-is-internal', 'ACP-CALL-1', /code is -32603/],
  ['notification-answered', 'ACP-CALL-3', /was answered/],
  ['own-method', 'ACP-CALL-13', /faulty\/hello is neither/],
  ['hangs-on-eof', 'ACP-END-1', /stdin was closed did not come/],
  ['bad-exit', 'ACP-END-2', /"code":7/],
  ['orphan', 'ACP-END-5', /still run/],
  ['no-version', 'ACP-INIT-3', /no name or no version/],
  ['same-session-id', 'ACP-SESSION-1', /different ids is 1/],
  ['update-before-new', 'ACP-SESSION-3', /does not know yet/],
  ['bad-update', 'ACP-PROMPT-1', /does not fit the schema: update\.content/],
  ['session-internal', 'ACP-SESSION-5', /code is -32603/],
  ['session-internal', 'ACP-SESSION-6', /code is -32603/],
  ['relative-cwd', 'ACP-SESSION-2', /not an error/],
  ['list-empty', 'ACP-SESSION-12', /in the list is 0/],
  ['list-everywhere', 'ACP-SESSION-13', /another folder has it/],
  ['close-forgets-nothing', 'ACP-SESSION-14', /not an error/],
  ['delete-keeps', 'ACP-SESSION-16', /still in the list/],
  ['load-late', 'ACP-SESSION-8', /history came after the response/],
  ['load-forgets', 'ACP-SESSION-8', /agent's answers in the history is 0/],
  ['resume-history', 'ACP-SESSION-10', /sent history/],
  ['resume-forgets', 'ACP-SESSION-11', /not told the history/],
  ['prompt-late', 'ACP-PROMPT-1', /without a word|after its end/],
  ['words-lost', 'ACP-PROMPT-2', /what it said/],
  ['call-not-introduced', 'ACP-PROMPT-9', /not shown before/],
  ['stray-update', 'ACP-PROMPT-3', /not introduced/],
  ['call-left-open', 'ACP-PROMPT-4', /still open/],
  ['sessions-mixed', 'ACP-PROMPT-7', /what the second session said/],
  ['cancel-end-turn', 'ACP-CANCEL-1', /stopReason is not cancelled/],
  ['cancel-late', 'ACP-CANCEL-1', /after its end/],
  ['cancel-waits', 'ACP-CANCEL-4', /did not come/],
  ['cancel-not-durable', 'ACP-CANCEL-8', /before the cancel is gone/],
  ['cancel-not-durable', 'RESTORE-DECLINE-9', /restoreAskUserQuestion"\] is true/],
  ['error-allows', 'ACP-PERMIT-4', /ran without permission/],
  ['unoffered-allows', 'ACP-PERMIT-5', /ran without permission/],
  ['garbage-allows', 'ACP-PERMIT-6', /ran without permission/],
  ['cancelled-allows', 'ACP-PERMIT-3', /ran without permission/],
  ['question-lost', 'RESTORE-LOAD-2', /is absent, not true/],
  ['hint-without-skip', 'RESTORE-LOAD-1', /open call was updated/],
  ['hint-without-skip', 'RESTORE-LOAD-12', /whether it hints is true/],
  ['skip-without-hint', 'RESTORE-LOAD-12', /whether it hints is false/],
  ['hint-false', 'RESTORE-LOAD-4', /is false, not/],
  ['suppressed-hints', 'RESTORE-LOAD-4', /is true, not/],
  ['string-suppresses', 'RESTORE-LOAD-6', /is absent, not true/],
  ['reading-keeps-open', 'RESTORE-LOAD-7', /state of the call is "in_progress"/],
  ['bulk-closes', 'RESTORE-LOAD-9', /states of the call in the replay/],
  ['mixed-restored', 'RESTORE-LOAD-10', /is true, not/],
  ['invalid-asked', 'RESTORE-LOAD-11', /did not come|a person was asked/],
  ['load-writes', 'RESTORE-LOAD-13', /is absent, not true/],
  ['once-a-process', 'RESTORE-LOAD-14', /is absent, not true/],
  ['switch-ignored', 'RESTORE-LOAD-16', /is true, not/],
  ['new-call-id', 'RESTORE-ASK-1', /the tool call id/],
  ['no-questions', 'RESTORE-ASK-1', /qwenQuestions is absent/],
  ['id-reused', 'RESTORE-ASK-2', /has been used/],
  ['answer-dropped', 'RESTORE-ASK-3', /was not told the answer/],
  ['answer-twice', 'RESTORE-ASK-3', /told the answer twice/],
  ['user-message-added', 'RESTORE-ASK-3', /was not told|user message was added/],
  ['answer-made-up', 'RESTORE-ASK-7', /made up/],
  ['answer-not-kept', 'RESTORE-ASK-8', /"failed", not "completed"/],
  ['restored-twice', 'RESTORE-ASK-9', /asks a person|did not come/],
  ['suppressed-asked', 'RESTORE-ASK-10', /asks a person|did not come/],
  ['content-used', 'RESTORE-ASK-11', /content of a restore prompt/],
  ['two-at-once', 'RESTORE-ASK-13', /at once/],
  ['order-reversed', 'RESTORE-ASK-13', /order of the calls/],
  ['decline-asks-model', 'RESTORE-DECLINE-1', /requests to the model/],
  ['decline-not-kept', 'RESTORE-DECLINE-1', /is true, not/],
  ['declined-first-asks', 'RESTORE-DECLINE-11', /did not come|asked all the same/],
  ['timeout-declines', 'RESTORE-UNATTENDED-1', /is absent, not true/],
  ['closed-declines', 'RESTORE-UNATTENDED-2', /is absent, not true/],
  ['cancel-declines', 'RESTORE-UNATTENDED-3', /is absent, not true/],
  ['sigterm-declines', 'RESTORE-UNATTENDED-11', /is absent, not true/],
  ['half-batch', 'RESTORE-UNATTENDED-7', /is absent, not true/],
  ['overtaken-unpaired', 'RESTORE-ORDER-1', /results after the question/],
  ['overtaken-asked', 'RESTORE-ORDER-2', /asks a person|did not come/],
  ['asked-twice', 'RESTORE-ORDER-3', /did not come|asked twice|not end_turn/],
  ['load-hangs', 'RESTORE-ORDER-5', /session\/load did not come/],
  ['continue-accepts', 'RESTORE-CONTINUE-1', /accepted and interruption/],
  ['continue-answers', 'RESTORE-CONTINUE-2', /requests to the model/],
];

const command = (...faults: string[]) => [
  process.execPath,
  AGENT,
  '--restore-ask-user-question',
  ...faults.flatMap((fault) => ['--fault', fault]),
];

let findings: Findings;

async function rowsOf(faults: readonly string[], only: readonly string[], patience: number): Promise<readonly Row[]> {
  const target: Target = { command: command(...faults), env: {} };
  return (await run({ target, suites: SUITES, only, findings, patience, jobs: 4 })).rows;
}

beforeAll(async () => {
  findings = await probe({ command: command(), env: {} }, PATIENCE);
});

test('the agent has no fault that no check is said to catch', () => {
  expect(FAULTS.filter((fault) => !CAUGHT.some(([name]) => name === fault))).toEqual([]);
});

describe.concurrent('a planted fault is caught, and by the check that is about it', () => {
  test.each(CAUGHT)(
    '%s: %s',
    async (fault, check, reason) => {
      const [row] = await rowsOf([fault], [check], /did not come/.test(reason.source) ? SILENCE : PATIENCE);
      expect(row).toMatchObject({ id: check, reason: expect.stringMatching(reason) });
      expect(row?.status).toBe(row?.level === 'must' ? 'fail' : 'warn');
    },
    60_000,
  );
});

test('without faults the same checks pass', async () => {
  const checks = [...new Set(CAUGHT.map(([, check]) => check))];
  const rows = await rowsOf([], checks, PATIENCE);
  expect(rows.filter(({ status }) => status !== 'pass')).toEqual([]);
  expect(rows).toHaveLength(checks.length);
}, 120_000);
