import { expect, test } from 'vitest';
import { callIds, responseIds } from '../support/evidence.ts';
import { type Asked, CANCELLED, DECLINE, Home, Peer, RESTORE, SUPPRESS, submit, unattended } from '../support/peer.ts';
import { randomNumbers } from '../support/random.ts';

// biome-ignore lint/suspicious/noExplicitAny: records of every form
type Any = any;

const CWD_PARAMS = { cwd: '/srv/project', mcpServers: [] };
const RED = submit({ 0: 'Red' });
const REPLIES = [
  RED,
  RED,
  submit({}),
  DECLINE,
  CANCELLED,
  unattended('timeout'),
  unattended('session_closed'),
  { no: 'outcome' },
];

/** What is wrong with a transcript that one process wrote. */
function faults(records: Any[]): string[] {
  const found: string[] = [];
  let open = new Set<string>();
  for (const [at, record] of records.entries()) {
    if (record.parentUuid !== (records[at - 1]?.uuid ?? null))
      found.push(`record ${at} is not linked to the one before it`);
    if (!record.message) continue;
    const calls = callIds([record]);
    const responses = responseIds([record]);
    for (const id of responses) if (!open.delete(id)) found.push(`record ${at} answers ${id}, which is not open`);
    if (responses.length === 0 && open.size > 0)
      found.push(`record ${at} (${record.type}) comes while ${[...open]} is open`);
    if (calls.length > 0) open = new Set(calls);
  }
  return found;
}

/** Whether the record is a batch of questions and nothing else. */
function asksOnly({ message }: Any): boolean {
  const names = message.parts.flatMap(({ functionCall }: Any) => functionCall?.name ?? []);
  return names.length > 0 && names.every((name: string) => name === 'ask_user_question');
}

/** Everything a client can ask of a session. */
function operations(
  peer: Peer,
  waiting: Asked[],
  below: (n: number) => number,
): ((sessionId: string) => Promise<unknown>)[] {
  const answer = async () => waiting.splice(below(waiting.length || 1), 1)[0]?.answer(REPLIES[below(REPLIES.length)]);
  const goOn = { prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } };
  return [
    (id) => peer.prompt(id, 'hello'),
    (id) => peer.prompt(id, '[[ask1]]'),
    (id) => peer.prompt(id, '[[asktwice]]'),
    (id) => peer.prompt(id, '[[mixed]]'),
    (id) => peer.prompt(id, '[[stream]]'),
    (id) => peer.restore(id),
    (id) => peer.restore(id),
    (id) => peer.request('session/prompt', { sessionId: id, ...goOn }),
    (id) => peer.load(id),
    (id) => peer.load(id, { [SUPPRESS]: true }),
    (id) => peer.load(id, { 'qwen.session.loadReplayMode': 'bulk' }),
    (id) => peer.resume(id),
    (id) => peer.request('qwen/session/loadUpdates', { sessionId: id, ...CWD_PARAMS }),
    (id) => peer.request('qwen/control/session/continue', { sessionId: id }),
    (id) => peer.request('qwen/control/session/branch', { sessionId: id, ...CWD_PARAMS }),
    (id) => peer.notify('session/cancel', { sessionId: id }),
    (id) => peer.request('session/close', { sessionId: id }),
    answer,
    answer,
    async () => waiting.shift()?.refuse(-32000, 'no'),
  ];
}

/** Errors that a client may get at such times: no such session now, or not while a turn runs. */
const EXPECTED = [-32002, -32602];

async function settled(sent: readonly Promise<unknown>[]): Promise<unknown[]> {
  const ends = await Promise.allSettled(sent);
  return ends.flatMap((end) => (end.status === 'rejected' && !EXPECTED.includes(end.reason.code) ? [end.reason] : []));
}

for (const seed of [4, 7]) {
  test(`[TR-5, TR-9, ACP-8, ACP-13, RS-9, BT-2, BT-5] whatever is asked in whatever order, every request ends and every history is valid (seed ${seed})`, async () => {
    const below = randomNumbers(seed);
    const home = new Home();
    const peer = await Peer.start({ home, restore: true });
    const ids = await Promise.all([1, 2, 3].map(() => peer.newSession()));
    for (const id of ids) await peer.prompt(id, 'hello');
    const waiting: Asked[] = [];
    void (async () => {
      for (;;) waiting.push(await peer.question());
    })();
    const operate = operations(peer, waiting, below);
    const sent: Promise<unknown>[] = [];
    for (let round = 0; round < 200; round++) {
      for (let burst = below(4); burst >= 0; burst--) {
        const ask = operate[below(operate.length)] as (sessionId: string) => Promise<unknown>;
        const done = ask(ids[below(ids.length)] as string);
        done.catch(() => {});
        sent.push(done);
      }
      if (below(2) === 0) await peer.roundTrip();
    }
    for (const id of ids) await peer.load(id);
    for (const id of ids) await peer.notify('session/cancel', { sessionId: id });
    expect(await settled(sent)).toEqual([]);
    for (const id of ids) expect(faults(home.records(id))).toEqual([]);
    expect(peer.stderr).toBe('');
    expect(await peer.eof()).toEqual({ code: 0, signal: null });

    const next = await Peer.start({ home, restore: true });
    for (const id of ids) {
      const last = home.records(id).findLast(({ message }) => message);
      expect((await next.load(id))._meta?.[RESTORE] === true).toBe(asksOnly(last));
      expect((await next.prompt(id, 'hello')).stopReason).toBe('end_turn');
      expect(faults(home.records(id))).toEqual([]);
    }
  });
}
