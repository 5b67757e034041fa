import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { cards, kinds, responseIds, sent } from '../support/evidence.ts';
import { type Asked, Peer, RESTORE, SUPPRESS, submit } from '../support/peer.ts';

const BULK = { 'qwen.session.loadReplayMode': 'bulk' };
const CWD_PARAMS = { cwd: '/srv/project', mcpServers: [] };

// biome-ignore lint/suspicious/noExplicitAny: results and updates of every form
type Any = any;

/** Every way to look at a session again, with the updates that it shows; none for a resume. */
const LOOKS: readonly {
  how: string;
  look: (peer: Peer, sessionId: string) => Promise<{ result: Any; shown?: Any[] }>;
}[] = [
  { how: 'load', look: async (peer, id) => streamed(peer, id, () => peer.load(id)) },
  { how: 'suppressed load', look: async (peer, id) => streamed(peer, id, () => peer.load(id, { [SUPPRESS]: true })) },
  {
    how: 'bulk load',
    look: async (peer, id) => {
      const result = await peer.load(id, BULK);
      return { result, shown: result._meta['qwen.session.loadReplay'].updates };
    },
  },
  { how: 'resume', look: async (peer, id) => ({ result: await peer.resume(id) }) },
  { how: 'suppressed resume', look: async (peer, id) => ({ result: await peer.resume(id, { [SUPPRESS]: true }) }) },
  {
    how: 'loadUpdates',
    look: async (peer, id) => {
      const result = await peer.request('qwen/session/loadUpdates', { sessionId: id, ...CWD_PARAMS });
      return { result, shown: result.updates };
    },
  },
];

async function streamed(peer: Peer, id: string, load: () => Promise<Any>) {
  const from = peer.updates(id).length;
  const result = await load();
  return { result, shown: peer.updates(id).slice(from) };
}

/** The cards that belong to a call in these updates. */
const statuses = (updates: Any[], callId: string) =>
  updates.flatMap(({ toolCallId, status }) => (toolCallId === callId ? [status] : []));

const QUESTIONS: readonly {
  name: string;
  ask: (peer: Peer) => Promise<{ id: string; turn: Promise<Any>; asked: Asked }>;
}[] = [
  {
    name: 'a first-asked question',
    ask: async (peer) => {
      const id = await peer.newSession();
      return { id, ...(await peer.askIn(id)) };
    },
  },
  {
    name: 'a question that was asked again',
    ask: async (peer) => {
      const id = peer.home.place('c0.dangling', randomUUID());
      await peer.load(id);
      const turn = peer.restore(id);
      return { id, turn, asked: await peer.question() };
    },
  },
];

for (const { name, ask } of QUESTIONS) {
  for (const restore of [true, false]) {
    if (!restore && name !== 'a first-asked question') continue;
    test(`[BT-2, ACP-10, LS-1, LS-4, TR-3, K096] loads while ${name} waits answer at once and leave it as it is, switch ${restore ? 'on' : 'off'}`, async () => {
      const peer = await Peer.start({ restore });
      const { id, turn, asked } = await ask(peer);
      const callId = asked.params.toolCall.toolCallId;
      const onDisk = peer.home.bytes(id);
      for (const { how, look } of LOOKS) {
        const { result, shown } = await look(peer, id);
        expect(result._meta ?? {}, how).not.toHaveProperty(RESTORE);
        if (shown) expect(statuses(shown, callId), how).toEqual(['in_progress']);
      }
      await Promise.all(LOOKS.map(({ look }) => look(peer, id)));
      await peer.roundTrip();
      expect(peer.unanswered).toBe(0);
      expect(asked.signal.aborted).toBe(false);
      expect(sent(peer, '$/cancel_request')).toEqual([]);
      expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
      expect(cards(peer, id)).not.toContain('tool_call_update failed');

      asked.answer(submit({ 0: 'Blue' }));
      expect(await turn).toMatchObject({ stopReason: 'end_turn' });
      expect(responseIds(peer.home.records(id))).toEqual([callId]);
      expect(cards(peer, id).at(-1)).toBe('tool_call_update completed');
      expect(peer.said()).toContain('TOOL RESULT ECHO');
    });
  }
}

test('[BT-2, LS-1, RS-10] a load between two answers of a batch shows the first as given and the second as open', async () => {
  const peer = await Peer.start({ restore: true });
  const id = await peer.newSession();
  const { turn, asked } = await peer.askIn(id, '[[asktwice]]');
  asked.answer(submit({ 0: 'Blue' }));
  const second = await peer.question();
  const [first, open] = [asked, second].map(({ params }) => params.toolCall.toolCallId) as [string, string];
  const onDisk = peer.home.bytes(id);
  for (const { how, look } of LOOKS) {
    const { shown } = await look(peer, id);
    if (shown === undefined || how === 'loadUpdates') continue;
    expect(statuses(shown, first), how).toEqual(['in_progress', 'completed']);
    expect(statuses(shown, open), how).toEqual(['in_progress']);
  }
  expect(peer.home.bytes(id).equals(onDisk)).toBe(true);
  second.answer(submit({ 0: 'Small' }));
  expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  expect(responseIds(peer.home.records(id))).toEqual([first, open]);
  const { shown } = await streamed(peer, id, () => peer.load(id));
  for (const callId of [first, open]) expect(statuses(shown, callId)).toEqual(['in_progress', 'completed']);
});

const WORDS = Array.from({ length: 150 }, (_, at) => `w${at} `);
const STREAM = { rules: [{ steps: WORDS.flatMap((text) => [{ text }, { wait: 1 }]) }] };

/** The agent's text as a client holds that starts anew with every replay: what it held at the end of each, and at last. */
function textsHeld(updates: Any[]): string[] {
  const texts: string[] = [];
  for (const { sessionUpdate, content } of updates) {
    if (sessionUpdate === 'user_message_chunk') texts.push('');
    if (sessionUpdate === 'agent_message_chunk') texts.push(`${texts.pop() ?? ''}${content.text}`);
  }
  return texts;
}

/** Runs a turn that talks, and makes these calls again and again from its first word to its end. */
async function whileTalking(peer: Peer, id: string, calls: () => Promise<unknown>[]): Promise<void> {
  let over = false;
  const turn = peer.prompt(id, 'talk').finally(() => {
    over = true;
  });
  await peer.until(() => peer.said() !== '');
  while (!over) await Promise.all(calls());
  await turn;
}

test('[BT-2, ACP-3, LS-7] loads while text streams show all that was said, once and in order, and the stream goes on behind them', async () => {
  const peer = await Peer.start({ restore: true, script: STREAM });
  const id = await peer.newSession();
  await whileTalking(peer, id, () => [
    peer.load(id),
    peer.load(id, { [SUPPRESS]: true }),
    peer.resume(id),
    peer.load(id),
  ]);
  const texts = ['', ...textsHeld(peer.updates(id))];
  expect(texts.length).toBeGreaterThan(4);
  expect(texts.at(-1)).toBe(WORDS.join(''));
  for (const [at, text] of texts.entries()) expect(text.startsWith(texts[at - 1] ?? ''), `${at}`).toBe(true);
  expect(kinds(peer.home.records(id)).filter((kind) => kind === 'assistant')).toHaveLength(1);
});

test('[BT-2, ACP-11] what streams on behind a bulk load continues what the response held', async () => {
  const peer = await Peer.start({ restore: true, script: STREAM });
  const id = await peer.newSession();
  await whileTalking(peer, id, () => [peer.load(id, BULK), peer.load(id, BULK)]);
  const held: string[] = [''];
  for (const { dir, message } of peer.wire as Any[]) {
    if (dir === 'out') continue;
    const bulk = message.result?._meta?.['qwen.session.loadReplay'];
    if (bulk) held.push(textsHeld(bulk.updates).at(-1) ?? '');
    if (message.params?.update?.sessionUpdate === 'agent_message_chunk')
      held.push(held.at(-1) + message.params.update.content.text);
  }
  expect(held.at(-1)).toBe(WORDS.join(''));
  for (const [at, text] of held.entries()) expect(text.startsWith(held[at - 1] ?? ''), `${at}`).toBe(true);
});

test('[BT-2, LS-1] a load while the model still writes a question shows its card and finalizes nothing', async () => {
  const [asks] = [{ call: 'ask_user_question', args: { questions: [] }, id: 'call_1' }];
  const script = { rules: [{ steps: [{ text: 'let me ask. ' }, asks, { wait: 'abort' }] }] };
  const peer = await Peer.start({ restore: true, script });
  const id = await peer.newSession();
  const turn = peer.prompt(id, 'go');
  await peer.until(() => cards(peer, id).length === 1);
  const { shown } = await streamed(peer, id, () => peer.load(id));
  expect(textsHeld(shown)).toEqual(['let me ask. ']);
  expect(statuses(shown, 'call_1')).toEqual(['pending']);
  await peer.notify('session/cancel', { sessionId: id });
  expect(await turn).toEqual({ stopReason: 'cancelled' });
});
