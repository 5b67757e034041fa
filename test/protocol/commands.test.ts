import { randomUUID } from 'node:crypto';
import { utimesSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CWD, Home, Peer, RECORDED_SCRIPT, RESTORE, submit } from '../support/peer.ts';
import { asks, COLOUR, dangling, modelSays, place, saidIn, userSays } from '../support/sessions.ts';

// biome-ignore lint/suspicious/noExplicitAny: records and updates of every form
type Any = any;

const used = (promptTokenCount: number) => ({
  usage: { promptTokenCount, candidatesTokenCount: 1, totalTokenCount: 9 },
});
const SUMMARY = { when: { text: 'Summarize this conversation' }, steps: [{ text: 'THE SUMMARY' }] };
const kinds = (records: readonly Any[]) => records.map(({ type, subtype }) => subtype ?? type);
const updates = (peer: Peer, id: string, kind: string): Any[] =>
  peer.allUpdates(id).filter(({ sessionUpdate }) => sessionUpdate === kind);

test('[ACP-2, ACP-3, TR-10] commands are listed, answered without the model, replayed, and no part of what the model hears', async () => {
  const heard = { when: { pattern: '^hello$', turn: 1 }, steps: [{ text: 'FIRST TURN' }] };
  const peer = await Peer.start({ script: { rules: [heard, { steps: [{ text: 'LATER TURN' }] }] } });
  const id = await peer.newSession();
  expect(await peer.prompt(id, '/help')).toEqual({ stopReason: 'end_turn' });
  const [{ availableCommands }] = updates(peer, id, 'available_commands_update');
  expect(availableCommands.map(({ name }: Any) => name)).toEqual(['help', 'model', 'compress']);
  const supported = await peer.request('qwen/status/session/supported_commands', { sessionId: id });
  expect(supported.availableCommands).toEqual(availableCommands);
  const help = saidIn(peer, id);
  expect(availableCommands.filter(({ name }: Any) => !help.includes(`/${name}`))).toEqual([]);
  expect(updates(peer, id, 'session_info_update')).toEqual([]);

  expect(await peer.prompt(id, '/compress')).toEqual({ stopReason: 'end_turn' });
  await peer.prompt(id, '/model other');
  await peer.prompt(id, 'hello');
  expect(saidIn(peer, id)).toMatch(/FIRST TURN$/);
  expect(updates(peer, id, 'session_info_update')).toEqual([{ sessionUpdate: 'session_info_update', title: 'hello' }]);
  const records = peer.home.records(id);
  const command = ['user', 'file_history_snapshot', 'slash_command'];
  expect(kinds(records).slice(0, 9)).toEqual([...command, ...command, ...command]);
  expect(records[2].systemPayload).toEqual({
    phase: 'result',
    rawCommand: '/help',
    outputHistoryItems: [{ type: 'assistant', text: help.replaceAll('  \n', '\n') }],
  });
  expect((await peer.request('session/list', { cwd: CWD })).sessions).toMatchObject([
    { sessionId: id, title: 'hello' },
  ]);

  const second = await Peer.start({ home: peer.home });
  await second.load(id);
  const live = peer.updates(id).map(({ sessionUpdate }) => sessionUpdate);
  expect(saidIn(second, id)).toBe(saidIn(peer, id));
  expect(updates(second, id, 'user_message_chunk').map(({ content }) => content.text)).toEqual([
    '/help',
    '/compress',
    '/model other',
    'hello',
  ]);
  expect(live).toContain('agent_message_chunk');
  const printed = (shown: Peer) =>
    updates(shown, id, 'agent_message_chunk').flatMap(({ content, _meta }) =>
      _meta?.source === 'slash_command' ? [content.text] : [],
    );
  expect(printed(peer)).toHaveLength(3);
  expect(printed(second)).toEqual(printed(peer));
});

test('[TR-2, TR-9, EL-3, K065] /compress replaces the older part by a summary, and a hanging question stays', async () => {
  const home = new Home();
  const old = [userSays('old words. '.repeat(500)), modelSays({ text: 'old answer' })];
  const id = place(home, ...old, userSays('ask'), modelSays(asks('call_1', COLOUR)));
  const rules = [
    SUMMARY,
    { when: { response: true }, steps: [{ text: 'heard {{response}}' }] },
    ...RECORDED_SCRIPT.rules,
  ];
  const peer = await Peer.start({ home, restore: true, script: { rules } });
  expect((await peer.load(id))._meta[RESTORE]).toBe(true);
  expect(await peer.prompt(id, '/compress')).toEqual({ stopReason: 'end_turn' });
  const compressions = home.records(id).filter(({ subtype }) => subtype === 'chat_compression');
  expect(compressions.length).toBe(1);
  const { info, compressedHistory } = compressions[0].systemPayload;
  expect(info).toEqual({
    originalTokenCount: expect.any(Number),
    newTokenCount: expect.any(Number),
    compressionStatus: 1,
    triggerReason: 'manual',
  });
  expect(info.newTokenCount).toBeLessThan(info.originalTokenCount);
  const { originalTokenCount, newTokenCount } = info;
  const contextCompression = {
    phase: 'done',
    originalTokenCount,
    newTokenCount,
    originalTokenCountIsEstimated: true,
    newTokenCountIsEstimated: true,
  };
  const shown = (seen: Peer) =>
    updates(seen, id, 'agent_message_chunk').flatMap(({ _meta }) => _meta?.contextCompression ?? []);
  expect(shown(peer)).toEqual([contextCompression]);
  expect(compressedHistory[0].parts[0].text).toContain('THE SUMMARY');
  expect(compressedHistory.slice(2)).toEqual([
    { role: 'user', parts: [{ text: 'ask' }] },
    { role: 'model', parts: [asks('call_1', COLOUR)] },
  ]);
  // Asked again in this process, and by another one after it.
  const second = await Peer.start({ home, restore: true, script: { rules } });
  expect((await second.load(id))._meta[RESTORE]).toBe(true);
  expect(shown(second)).toEqual([contextCompression]);
  const turn = peer.restore(id);
  const asked = await peer.question();
  expect(asked.params.toolCall.toolCallId).toBe('call_1');
  asked.answer(submit({ 0: 'Red' }));
  expect(await turn).toEqual({ stopReason: 'end_turn' });
  expect(saidIn(peer, id)).toContain('**Colour**: Red');
});

test('[MD-4, TR-2] a conversation that fills the window is compressed before the next prompt, and the client sees how full it is', async () => {
  const first = { when: { text: 'first', turn: 1 }, steps: [{ text: 'one '.repeat(500) }, used(800)] };
  const rules = [SUMMARY, first, { when: { text: 'second', turn: 2 }, steps: [{ text: 'AFTER IT' }, used(20)] }];
  const peer = await Peer.start({ script: { contextWindow: 1_000, rules } });
  const id = await peer.newSession();
  await peer.prompt(id, 'first');
  await peer.prompt(id, 'second');
  // The summary and its acknowledgement, then the prompt: the model heard two messages with text.
  expect(saidIn(peer, id)).toMatch(/summary\.\s+AFTER IT$/);
  expect(updates(peer, id, 'usage_update')).toEqual([
    { sessionUpdate: 'usage_update', used: 800, size: 1_000 },
    { sessionUpdate: 'usage_update', used: 20, size: 1_000 },
  ]);
  expect(kinds(peer.home.records(id)).filter((kind) => kind === 'chat_compression').length).toBe(1);
  await peer.prompt(id, 'second').catch(() => {});
  expect(kinds(peer.home.records(id)).filter((kind) => kind === 'chat_compression').length).toBe(1);
});

test('[MD-4] a refused context is compressed once a turn; where that fails, the person is told and the session goes on', async () => {
  const overflow = { fault: 'context_overflow', message: 'too long' };
  const rules = [
    { when: { text: 'Summarize', times: 1 }, steps: [{ fault: 'server', message: 'no summary today' }] },
    SUMMARY,
    { when: { text: 'big', times: 2 }, steps: [overflow] },
    { when: { text: 'huge' }, steps: [overflow] },
    { steps: [{ text: 'FINE. '.repeat(200) }] },
  ];
  const peer = await Peer.start({ script: { rules } });
  const id = await peer.newSession();
  await peer.prompt(id, 'hello');
  const compressions = () => kinds(peer.home.records(id)).filter((kind) => kind === 'chat_compression').length;
  await expect(peer.prompt(id, 'big')).rejects.toMatchObject({ message: expect.stringContaining('too long') });
  expect(saidIn(peer, id)).toContain('no summary today');
  expect(compressions()).toBe(0);
  expect(await peer.prompt(id, 'big')).toMatchObject({ stopReason: 'end_turn' });
  expect(compressions()).toBe(1);
  await expect(peer.prompt(id, 'huge')).rejects.toMatchObject({ message: expect.stringContaining('too long') });
  expect(compressions()).toBe(2);
  expect(await peer.prompt(id, 'hello')).toMatchObject({ stopReason: 'end_turn' });
});

test('[ACP-2, TR-8] a thousand sessions are listed by pages, each once, whatever is written meanwhile', async () => {
  const home = new Home();
  const ids = Array.from({ length: 1_000 }, (_, at) => {
    const id = dangling(home, asks('c', COLOUR));
    // Several of one time: their order must be one, too.
    utimesSync(home.file(id), 1_000, 1_000 + Math.floor(at / 3));
    return id;
  });
  const peer = await Peer.start({ home });
  const listed: string[] = [];
  const pages: number[] = [];
  let cursor: string | undefined;
  do {
    const page: Any = await peer.request('session/list', { cwd: CWD, ...(cursor && { cursor }) });
    if (cursor === undefined) dangling(home, asks('c', COLOUR));
    pages.push(page.sessions.length);
    listed.push(...page.sessions.map(({ sessionId }: Any) => sessionId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  expect(pages).toEqual(Array(20).fill(50));
  expect(listed.toSorted()).toEqual(ids.toSorted());
  const large: Any = await peer.request('session/list', { _meta: { size: 1_000 } });
  expect(large.sessions.length).toBe(100);
  for (const bad of [
    'x',
    Buffer.from('[1]').toString('base64url'),
    Buffer.from('{}').toString('base64url'),
    randomUUID(),
  ]) {
    await expect(peer.request('session/list', { cursor: bad })).rejects.toMatchObject({ code: -32602 });
  }
});

test('[BT-13] a daemon is sent no title that only the prompt gave', async () => {
  const peer = await Peer.start({ initialize: { clientInfo: { name: 'qwen-serve-bridge', version: '0' } } });
  const id = await peer.newSession();
  await peer.prompt(id, 'hello');
  expect(updates(peer, id, 'session_info_update')).toEqual([]);
});

test('[CLI-6, ACP-2] /model offers what the settings list, and opens what is chosen', async () => {
  const home = new Home();
  const openai = ['one', 'two'].map((id) => ({ id, name: id.toUpperCase(), envKey: 'OPENAI_API_KEY' }));
  writeFileSync(`${home.path}/settings.json`, JSON.stringify({ modelProviders: { openai } }));
  const env = { OPENAI_API_KEY: 'key', OPENAI_MODEL: 'one' };
  const peer = await Peer.start({ home, env, script: null, args: ['--auth-type', 'openai'] });
  const id = await peer.newSession();
  await peer.prompt(id, '/model');
  expect(saidIn(peer, id)).toMatch(/uses `one`[\s\S]*`one\(openai\)`: ONE {2}\n- `two\(openai\)`: TWO$/);
  await peer.prompt(id, '/model two');
  expect(saidIn(peer, id)).toMatch(/goes on with `two`\.$/);
  await peer.prompt(id, '/model three');
  expect(saidIn(peer, id)).toMatch(/no model "three"[^\n]*$/);
});
