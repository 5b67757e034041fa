import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Daemon, daemonPlace, type EventReader } from '../support/daemon.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies and events of every form
type Json = any;

const option = (label: string) => ({ label, description: `about ${label}` });
const QUESTIONS = [
  { question: 'Which colour?', header: 'Colour', options: ['A', 'B'].map(option), multiSelect: false },
  { question: 'Which parts?', header: 'Parts', options: ['X', 'Y', 'Z'].map(option), multiSelect: true },
  { question: 'Which name?', header: 'Name', options: ['M', 'N'].map(option), multiSelect: false },
];
const THREE_QUESTIONS = {
  rules: [
    { when: { response: true }, steps: [{ text: 'ECHO {{response}}' }] },
    { steps: [{ text: 'let me ask. ' }, { call: 'ask_user_question', args: { questions: QUESTIONS } }] },
  ],
};
const ANSWERS = { 0: 'A', 1: ['X', 'Y'], 2: 'my own words' };
const vote = (answers: unknown) => ({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers });
const OPEN_CARD = { sessionUpdate: 'tool_call', status: 'in_progress', rawInput: { questions: QUESTIONS } };
/** What a load's answer shows of calls. */
const cards = ({ compactedReplay }: Json): Json[] =>
  compactedReplay.flatMap(({ data }: Json) => (data.update.toolCallId ? [data.update] : []));
const types = (events: EventReader, type: string): Json[] => events.seen.filter((event) => event.type === type);

test('[DM-2, DM-3, DM-7, BT-11, RS-3, K005, K007, K011, K017, K040, K042, K043, K044] a question after a crash: whoever comes can answer it, its form is in the status, and one of two answers counts', async () => {
  const place = daemonPlace();
  const first = await Daemon.start({ place, script: THREE_QUESTIONS });
  const { sessionId } = await first.ask('go');
  await first.kill();

  const daemon = await Daemon.start({ place, script: THREE_QUESTIONS });
  const path = `/session/${sessionId}`;
  const status = async () => await daemon.get(`${path}/status`);
  // Looked at all the while: a session that can be seen is busy, and one that waits is, too.
  const seen: Json[] = [];
  let loaded: Json;
  const loading = daemon.post(`${path}/load`, {}, 'alice').then((answer) => {
    loaded = answer;
  });
  while (!seen.at(-1)?.isWaitingForUserQuestion) {
    const { status: code, body } = await status();
    if (code === 200) seen.push(body);
  }
  await loading;
  expect(loaded).toMatchObject({ status: 200, body: { hasActivePrompt: true } });
  expect(seen.filter(({ hasActivePrompt }) => !hasActivePrompt)).toEqual([]);
  expect(cards(loaded.body)).toMatchObject([OPEN_CARD]);

  const [pending, ...others] = seen.at(-1).pendingInteractions;
  expect(others).toEqual([]);
  expect(pending).toMatchObject({
    kind: 'user_question',
    questions: QUESTIONS.map((question, at) => ({ ...question, answerKey: String(at) })),
    options: [{ optionId: 'proceed_once' }, { optionId: 'cancel' }],
  });
  const { requestId } = pending;

  const alice = await daemon.events(sessionId);
  await alice.next('permission_request');
  const { body: second } = await daemon.post(`${path}/load`, {}, 'bob');
  // The design hands the waiting request over in the answer of the load itself, so that nothing of it can come before.
  expect(second).toMatchObject({ attached: true, hasActivePrompt: true });
  expect(cards(second)).toMatchObject([OPEN_CARD]);
  const asked = second.liveJournal.filter(({ type }: Json) => type === 'permission_request');
  expect(asked.map(({ data }: Json) => data.requestId)).toEqual([requestId]);
  const bob = await daemon.events(sessionId);
  expect((await bob.next('permission_request')).data.requestId).toBe(requestId);
  expect((await status()).body).toMatchObject({ clientCount: 2, pendingInteractions: [{ requestId }] });

  const ballots = await Promise.all([
    daemon.post(`${path}/permission/${requestId}`, vote(ANSWERS), second.clientId),
    daemon.post(`${path}/permission/${requestId}`, vote(ANSWERS), loaded.body.clientId),
  ]);
  expect(ballots.map(({ status: code }) => code).sort()).toEqual([200, 404]);
  expect(ballots.find(({ status: code }) => code === 404)?.body).toMatchObject({ code: 'permission_already_resolved' });
  for (const events of [alice, bob]) {
    await events.next('turn_complete');
    expect(types(events, 'permission_resolved').map(({ data }) => data.requestId)).toEqual([requestId]);
  }
  const results = daemon.records(sessionId).filter(({ type }) => type === 'tool_result');
  expect(results).toHaveLength(1);
  expect(results[0].toolCallResult.resultDisplay.answers).toEqual([
    { question: 'Which colour?', answer: 'A' },
    { question: 'Which parts?', answer: 'X, Y' },
    { question: 'Which name?', answer: 'my own words' },
  ]);
  const said = alice.seen.map(({ data }) => data.update?.content?.text ?? '').join('');
  expect(said.match(/ECHO/g)).toHaveLength(1);
  expect(said).toMatch(/\*\*Colour\*\*: A\n\*\*Parts\*\*: X, Y\n\*\*Name\*\*: my own words/);
});

test('[DM-8, DM-9, BT-1, K028, K029, K030] a timeout is told to everybody, a late answer is told why it is late, and the question is still there to be asked', async () => {
  const daemon = await Daemon.start({ args: ['--permission-response-timeout-ms', '40'] });
  const { sessionId, clientId, requestId, events } = await daemon.ask();
  const late = await daemon.events(sessionId, { 'last-event-id': '0' });
  for (const reader of [events, late]) {
    const { data } = await reader.next('permission_resolved');
    expect(data).toEqual({ requestId, outcome: { outcome: 'cancelled' }, reason: 'timeout' });
    await reader.next('turn_complete');
  }
  const answer = await daemon.post(`/session/${sessionId}/permission/${requestId}`, vote({ 0: 'Red' }), clientId);
  // The design has a 404 with the code of what is over; the words for why are those of the event.
  expect(answer).toMatchObject({
    status: 404,
    body: { code: 'permission_already_resolved', requestId, outcome: { outcome: 'cancelled' }, reason: 'timeout' },
  });
  expect((await late.next('permission_already_resolved')).data).toMatchObject({ requestId });
  expect(daemon.records(sessionId).filter(({ type }) => type === 'tool_result')).toEqual([]);
  const { body } = await daemon.post(`/session/${sessionId}/load`, {}, 'me');
  expect(body).toMatchObject({ hasActivePrompt: true });
  expect((await late.next('permission_request')).data.requestId).not.toBe(requestId);
});

test.skipIf(!existsSync('/proc/self/task'))(
  '[ACP-9, BT-1, K087] a child whose daemon is killed ends, and writes nothing of its question',
  async () => {
    const daemon = await Daemon.start();
    const { sessionId } = await daemon.ask();
    const pid = daemon.process.pid;
    const [child = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    const file = () => readFileSync(daemon.place.home.file(sessionId, daemon.place.cwd));
    const before = file();
    await daemon.kill();
    // The end of its input tells it. A launcher that dies alone leaves its client's pipes open, and the client is served on.
    await expect.poll(() => isAlive(Number(child)), { timeout: 2_000 }).toBe(false);
    expect(file().equals(before)).toBe(true);
  },
);

/** Whether this process runs; one that has ended and that nobody waits for does not. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
