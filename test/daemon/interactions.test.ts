import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { InteractionContext, InteractionOptions } from '../../src/daemon/interactions.ts';
import { Interactions } from '../../src/daemon/interactions.ts';
import { Journal } from '../../src/daemon/journal.ts';
import type { Caller, Vote } from '../../src/daemon/ports.ts';
import { DaemonError } from '../../src/daemon/ports.ts';
import type { InteractionEvent } from '../../src/daemon/replies.ts';
import { createLog } from '../../src/log.ts';
import { asking, COLOUR, PARTS, permitting } from '../support/questions.ts';
import { tempFolder } from '../support/temp.ts';

const BLUE: Vote = { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'Blue' } };
const RED: Vote = { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'Red' } };
const CANCELLED: Vote = { kind: 'cancelled' };
const ALICE: Caller = { clientId: 'alice', loopback: true };
const BOB: Caller = { clientId: 'bob', loopback: true };
const NOBODY: Caller = { clientId: undefined, loopback: true };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const reasonMeta = (reason: string) => ({ 'qwen.daemon.permissionCancelReason': reason });

/** One daemon's interactions; `restart` gives another's over the same journal. */
function daemon(options: Partial<InteractionOptions> = {}, dir = join(tempFolder(), 'votes')) {
  const log = createLog('silent');
  const events: InteractionEvent[] = [];
  const journal = new Journal(dir, log);
  onTestFinished(() => journal.close());
  const interactions = new Interactions(
    {
      strategy: 'first-responder',
      consensusQuorum: undefined,
      timeoutMs: 0,
      maxPending: 100,
      maxPendingPerSession: 10,
      publish: (event) => events.push(event),
      log,
      ...options,
    },
    journal,
  );
  const context: InteractionContext = {
    promptId: 'prompt-1',
    originatorClientId: 'alice',
    voters: new Set(['alice', 'bob', 'carol']),
    reissued: false,
  };
  const ask = (request = asking(), more: Partial<InteractionContext> = {}) =>
    interactions.open(request, { ...context, ...more });
  const waiting = (sessionId = 'session-1') => interactions.pending(sessionId).map(({ requestId }) => requestId);
  const types = () => events.map(({ type }) => type);
  return { interactions, journal, events, types, ask, waiting, restart: () => daemon(options, dir) };
}

async function refusal(work: Promise<unknown>): Promise<DaemonError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DaemonError)) throw new Error('it was not refused', { cause: error });
  return error;
}

test('[DM-7, DM-8, DM-9] a question waits under a new id, is announced, and its answer goes to the child alone', async () => {
  const { interactions, events, ask, waiting } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  expect(requestId).toMatch(UUID);
  expect(interactions.pending('session-1')).toMatchObject([{ kind: 'user_question', promptId: 'prompt-1' }]);
  await interactions.vote('session-1', requestId, BLUE, BOB);
  expect(await reply).toEqual({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { '0': 'Blue' } });
  expect(interactions.pending('session-1')).toEqual([]);
  const { options, toolCall } = asking();
  expect(events).toEqual([
    {
      sessionId: 'session-1',
      type: 'permission_request',
      promptId: 'prompt-1',
      data: { requestId, sessionId: 'session-1', toolCall, options },
      originatorClientId: 'alice',
    },
    {
      sessionId: 'session-1',
      type: 'permission_resolved',
      promptId: 'prompt-1',
      data: { requestId, outcome: { outcome: 'selected', optionId: 'proceed_once' }, voterClientId: 'bob' },
      originatorClientId: 'bob',
    },
  ]);
  expect(JSON.stringify(events.at(-1))).not.toContain('Blue');
});

test.each<[string, Vote, object, object]>([
  [
    'the cancelled outcome',
    CANCELLED,
    { outcome: { outcome: 'cancelled' }, _meta: reasonMeta('agent_cancelled') },
    { outcome: { outcome: 'cancelled' }, reason: 'declined' },
  ],
  [
    'the cancel option',
    { kind: 'selected', optionId: 'cancel' },
    { outcome: { outcome: 'selected', optionId: 'cancel' } },
    { outcome: { outcome: 'selected', optionId: 'cancel' }, reason: 'declined' },
  ],
])('[DM-7, DM-9, RS-5] a decline by %s', async (_, vote, sent, told) => {
  const { interactions, events, ask, waiting } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  await interactions.vote(undefined, requestId, vote, NOBODY);
  expect(await reply).toEqual(sent);
  expect(events.at(-1)?.data).toEqual({ requestId, ...told });
});

test('[DM-7] a late vote is told that it is late and what was decided, in the same session only', async () => {
  const { interactions, events, ask, waiting } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  await interactions.vote('session-1', requestId, BLUE, ALICE);
  await reply;
  const outcome = { outcome: 'selected', optionId: 'proceed_once' };
  const late = await refusal(interactions.vote('session-1', requestId, RED, BOB));
  expect(late).toMatchObject({ status: 404, code: 'permission_already_resolved' });
  expect(late.details).toEqual({ sessionId: 'session-1', requestId, outcome });
  expect(events.at(-1)).toMatchObject({
    type: 'permission_already_resolved',
    data: { requestId, sessionId: 'session-1', outcome },
  });
  const elsewhere = await refusal(interactions.vote('session-2', requestId, RED, BOB));
  expect(elsewhere).toMatchObject({ status: 404, code: undefined, details: { sessionId: 'session-2', requestId } });
  const unknown = await refusal(interactions.vote('session-1', 'nothing', RED, BOB));
  expect(unknown).toMatchObject({ status: 404, code: undefined });
});

test("[DM-7] another session's request cannot be voted on", async () => {
  const { interactions, ask, waiting } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  expect(await refusal(interactions.vote('session-2', requestId, BLUE, ALICE))).toMatchObject({ status: 404 });
  expect(waiting()).toEqual([requestId]);
  await interactions.vote('session-1', requestId, BLUE, ALICE);
  await reply;
});

test('[BT-12, BT-4] a vote in a wrong shape is refused, the question waits on and nothing is journaled', async () => {
  const { interactions, types, ask, waiting, restart } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  const wrong: Vote = { kind: 'selected', optionId: 'proceed_once', answers: { '0': ['Blue'] } };
  expect(await refusal(interactions.vote('session-1', requestId, wrong, ALICE))).toMatchObject({ status: 400 });
  expect(waiting()).toEqual([requestId]);
  expect(types()).toEqual(['permission_request']);
  const again = restart();
  void again.ask(asking(), { reissued: true });
  await vi.waitFor(() => expect(again.waiting()).toHaveLength(1));
  await interactions.vote('session-1', requestId, BLUE, ALICE);
  await reply;
});

test('[DM-7, BT-3] consensus: partial votes are announced, who was not attached is refused, the quorum decides', async () => {
  const { interactions, events, ask, waiting } = daemon({ strategy: 'consensus' });
  const reply = ask();
  const [requestId = ''] = waiting();
  const vote = (answer: Vote, caller: Caller) => interactions.vote('session-1', requestId, answer, caller);
  const stranger = { clientId: 'mallory', loopback: true };
  const refused = await refusal(vote(BLUE, stranger));
  expect(refused).toMatchObject({ status: 403, code: 'permission_forbidden' });
  expect(refused.details).toEqual({ requestId, sessionId: 'session-1', reason: 'designated_mismatch' });
  await vote(RED, ALICE);
  expect(events.at(-1)).toMatchObject({
    type: 'permission_partial_vote',
    data: { votesReceived: 1, votesNeeded: 1, quorum: 2, optionTallies: { proceed_once: 1 } },
    originatorClientId: 'alice',
  });
  await vote(BLUE, BOB);
  expect(waiting()).toEqual([requestId]);
  await vote(BLUE, ALICE);
  expect(await reply).toMatchObject({ answers: { '0': 'Blue' } });
});

test('[BT-4] a question that is asked again is answered by the vote it got, without an event', async () => {
  const first = daemon();
  void first.ask();
  await first.interactions.vote('session-1', first.waiting()[0] ?? '', BLUE, ALICE);
  const again = first.restart();
  expect(await again.ask(asking(), { reissued: true })).toMatchObject({ answers: { '0': 'Blue' } });
  expect(again.events).toEqual([]);
  expect(again.waiting()).toEqual([]);
});

test('[BT-4] a decline answers as well; another question, and a first one, are asked', async () => {
  const first = daemon();
  void first.ask();
  await first.interactions.vote('session-1', first.waiting()[0] ?? '', CANCELLED, ALICE);
  const again = first.restart();
  expect(await again.ask(asking(), { reissued: true })).toMatchObject({ outcome: { outcome: 'cancelled' } });
  void again.ask(asking([PARTS]), { reissued: true });
  void again.ask(asking());
  await vi.waitFor(() => expect(again.waiting()).toHaveLength(2));
});

test('[BT-4] of a batch only what nobody answered is asked again', async () => {
  const first = daemon();
  void first.ask(asking([COLOUR], { callId: 'call-1' }));
  await first.interactions.vote('session-1', first.waiting()[0] ?? '', BLUE, ALICE);
  const second = first.ask(asking([PARTS], { callId: 'call-2' }));
  await first.interactions.resolveSession('session-1', 'session_closed');
  expect(await second).toEqual({ outcome: { outcome: 'cancelled' }, _meta: reasonMeta('session_closed') });
  await first.interactions.turnEnded('session-1', 'ordinary', 'completed');
  const again = first.restart();
  expect(await again.ask(asking([COLOUR], { callId: 'call-1' }), { reissued: true })).toMatchObject({
    answers: { '0': 'Blue' },
  });
  void again.ask(asking([PARTS], { callId: 'call-2' }), { reissued: true });
  await vi.waitFor(() => expect(again.waiting()).toHaveLength(1));
});

test.each<[string, (first: ReturnType<typeof daemon>) => Promise<void>, boolean]>([
  ['completed', ({ interactions }) => interactions.turnEnded('session-1', 'ordinary', 'completed'), false],
  [
    'cancelled by a person',
    ({ interactions }) => interactions.turnEnded('session-1', 'ordinary', 'cancelled_by_person'),
    false,
  ],
  ['failed', ({ interactions }) => interactions.turnEnded('session-1', 'ordinary', 'failed'), true],
  ['lost with the child', ({ interactions }) => interactions.withdrawSession('session-1'), true],
  ['loaded, with nothing to ask', ({ interactions }) => interactions.forgetAnswers('session-1'), false],
  [
    'a restore that asked nothing',
    async ({ interactions }) => {
      await interactions.withdrawSession('session-1');
      await interactions.turnEnded('session-1', 'restore', 'completed');
    },
    true,
  ],
])('[BT-4] after an answer and a turn that was %s', async (_, end, kept) => {
  const first = daemon();
  void first.ask();
  await first.interactions.vote('session-1', first.waiting()[0] ?? '', BLUE, ALICE);
  await end(first);
  const again = first.restart();
  const reply = again.ask(asking(), { reissued: true });
  if (kept) expect(await reply).toMatchObject({ answers: { '0': 'Blue' } });
  else await vi.waitFor(() => expect(again.waiting()).toHaveLength(1));
});

test('[BT-4] a request that ends after its turn says nothing of the next one', async () => {
  const first = daemon();
  const abort = new AbortController();
  const left = first.ask(asking([PARTS], { callId: 'call-0' }), { signal: abort.signal });
  await first.interactions.turnEnded('session-1', 'ordinary', 'failed');
  void first.ask();
  abort.abort(new Error('withdrawn'));
  await expect(left).rejects.toThrow('withdrawn');
  await first.interactions.vote('session-1', first.waiting()[0] ?? '', BLUE, ALICE);
  await first.interactions.turnEnded('session-1', 'ordinary', 'completed');
  const again = first.restart();
  void again.ask(asking(), { reissued: true });
  await vi.waitFor(() => expect(again.waiting()).toHaveLength(1));
});

test('[BT-4] a vote that cannot be stored is a 503, the question waits and takes the next', async () => {
  const dir = join(tempFolder({ votes: 'a file in the way' }), 'votes');
  const { interactions, ask, waiting } = daemon({}, dir);
  const reply = ask();
  const [requestId = ''] = waiting();
  const vote = (answer: Vote, caller: Caller) => interactions.vote('session-1', requestId, answer, caller);
  for (const error of await Promise.all([refusal(vote(BLUE, ALICE)), refusal(vote(RED, BOB))])) {
    expect(error).toMatchObject({ status: 503, code: 'journal_unavailable', retryAfter: 1 });
  }
  expect(waiting()).toEqual([requestId]);
  rmSync(dir);
  await vote(RED, BOB);
  expect(await reply).toMatchObject({ answers: { '0': 'Red' } });
});

test('[BT-4, DM-7, K043] of votes at the same moment one decides, and only it is journaled', async () => {
  const { interactions, ask, waiting, restart } = daemon();
  const reply = ask();
  const [requestId = ''] = waiting();
  const callers = Array.from({ length: 8 }, (_, index) => ({ clientId: `client-${index}`, loopback: true }));
  const results = await Promise.allSettled(
    callers.map((caller, index) => interactions.vote('session-1', requestId, index === 0 ? BLUE : RED, caller)),
  );
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', ...Array(7).fill('rejected')]);
  expect(await reply).toMatchObject({ answers: { '0': 'Blue' } });
  expect(await restart().ask(asking(), { reissued: true })).toMatchObject({ answers: { '0': 'Blue' } });
});

test.each<[string, (d: ReturnType<typeof daemon>, gone: AbortController) => unknown]>([
  ['the session is closed', ({ interactions }) => interactions.resolveSession('session-1', 'session_closed')],
  ['the child dies', ({ interactions }) => interactions.withdrawSession('session-1')],
  ['the child withdraws the request', (_, gone) => gone.abort(new Error('gone'))],
])('[BT-4, BT-1] a vote that is on its way to the disk counts when %s', async (_, meanwhile) => {
  const one = daemon();
  const gone = new AbortController();
  const reply = one.ask(asking(), { signal: gone.signal });
  const vote = one.interactions.vote('session-1', one.waiting()[0] ?? '', BLUE, ALICE);
  await meanwhile(one, gone);
  await vote;
  expect(await reply).toMatchObject({ answers: { '0': 'Blue' } });
  expect(one.types()).toEqual(['permission_request', 'permission_resolved']);
  expect(await one.restart().ask(asking(), { reissued: true })).toMatchObject({ answers: { '0': 'Blue' } });
});

test('[DM-8, BT-4] a vote that is on its way to the disk counts when its time runs out', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { interactions, types, ask, waiting } = daemon({ timeoutMs: 1_000 });
  const reply = ask();
  const vote = interactions.vote('session-1', waiting()[0] ?? '', BLUE, ALICE);
  vi.advanceTimersByTime(1_000);
  await vote;
  expect(await reply).toMatchObject({ answers: { '0': 'Blue' } });
  expect(types()).toEqual(['permission_request', 'permission_resolved']);
});

test('[DM-10] what the child withdraws, or takes with it, is over; nobody decided it', async () => {
  const { interactions, events, ask, waiting } = daemon();
  const gone = new AbortController();
  const withdrawn = ask(asking(), { signal: gone.signal });
  const lost = ask(asking([PARTS], { callId: 'call-2' }), { signal: gone.signal });
  const settled = Promise.allSettled([withdrawn, lost]);
  const [requestId = ''] = waiting();
  await interactions.withdrawSession('session-1');
  gone.abort(new Error('the child is gone'));
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(events.slice(2).map(({ data }) => data)).toMatchObject([
    { requestId, outcome: { outcome: 'cancelled' }, reason: 'withdrawn' },
    { outcome: { outcome: 'cancelled' }, reason: 'withdrawn' },
  ]);
  expect(await refusal(interactions.vote('session-1', requestId, BLUE, ALICE))).toMatchObject({ status: 404 });
});

test('[DM-8, K028] a timeout ends a request as unattended, with a clock of its own, and 0 waits for ever', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { events, ask, waiting } = daemon({ timeoutMs: 1000 });
  const forever = daemon();
  void forever.ask();
  const first = ask();
  vi.advanceTimersByTime(600);
  const second = ask(asking([PARTS], { callId: 'call-2' }));
  vi.advanceTimersByTime(600);
  expect(await first).toEqual({ outcome: { outcome: 'cancelled' }, _meta: reasonMeta('timeout') });
  expect(waiting()).toHaveLength(1);
  expect(events.at(-1)?.data).toMatchObject({ outcome: { outcome: 'cancelled' }, reason: 'timeout' });
  vi.advanceTimersByTime(600);
  expect(await second).toMatchObject({ _meta: reasonMeta('timeout') });
  vi.advanceTimersByTime(10 ** 9);
  expect(forever.waiting()).toHaveLength(1);
});

test('[DM-12] over the caps a request is put off, undecided, and what waits is untouched', async () => {
  const { interactions, ask, waiting } = daemon({ maxPending: 3, maxPendingPerSession: 2 });
  void ask();
  void ask(permitting());
  expect(await ask(asking([PARTS]))).toEqual({
    outcome: { outcome: 'cancelled' },
    _meta: reasonMeta('session_closed'),
  });
  void ask(asking([COLOUR], { sessionId: 'session-2' }));
  expect(await ask(asking([COLOUR], { sessionId: 'session-3' }))).toMatchObject({
    _meta: reasonMeta('session_closed'),
  });
  expect(waiting()).toHaveLength(2);
  expect(interactions.pendingCount).toBe(3);
});
