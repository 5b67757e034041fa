import { expect, test } from 'vitest';
import { CWD, RESTORE } from '../support/peer.ts';
import { call, type Frame, RawChild } from '../support/raw-child.ts';
import { asks, COLOUR } from '../support/sessions.ts';
import { SESSION, Writer } from '../support/transcripts.ts';

const MIB = 1 << 20;
const LINE = 32 * MIB;
const BULK = { _meta: { 'qwen.session.loadReplayMode': 'bulk' } };
const dangling = (writer: Writer) =>
  writer.user('u-last', 'go').add('q', 'assistant', { message: { role: 'model', parts: [asks('c1', COLOUR)] } });

const updatesIn = (frames: readonly Frame[]) => frames.flatMap(({ params }) => params?.update ?? []);
const size = (frame: unknown) => Buffer.byteLength(JSON.stringify(frame)) + 1;

test('[ACP-5, ACP-11, TR-3, K083] a session with a giant record loads, no line over 32 MiB; its question is asked again', async () => {
  const child = new RawChild({ restore: true });
  const giant = 'x'.repeat(33 * MIB);
  const writer = new Writer().user('u1', giant).calls('a1', ['g1']).result('r1', 'g1', 'done').says('a2', 'short');
  child.home.write(SESSION, dangling(writer).lines());
  const where = { sessionId: SESSION, cwd: CWD, mcpServers: [] };

  child.send(call(1, 'session/load', where));
  const frames = await child.until(1);
  expect(Math.max(...frames.map(size))).toBeLessThanOrEqual(LINE);
  const kinds = updatesIn(frames).map(({ sessionUpdate, toolCallId }) => toolCallId ?? sessionUpdate);
  expect(kinds.filter((kind) => kind !== 'available_commands_update')).toEqual([
    'user_message_chunk',
    'g1',
    'g1',
    'agent_message_chunk',
    'user_message_chunk',
    'c1',
  ]);
  expect(updatesIn(frames)[0].content.text.length).toBeGreaterThan(MIB);

  const bulk = await child.call(2, 'session/load', { ...where, ...BULK });
  expect(size(bulk)).toBeLessThanOrEqual(LINE);
  const replay = bulk.result._meta['qwen.session.loadReplay'];
  expect(replay.updates.at(-1)).toMatchObject({ toolCallId: 'c1', status: 'in_progress' });
  expect([frames.at(-1), bulk].map(({ result }) => result._meta[RESTORE])).toEqual([true, true]);
  expect(child.stderr).toBe('');
});

test('[ACP-11, ACP-10] a bulk load carries the newest 10,000 updates and says where the rest begins', async () => {
  const child = new RawChild({ restore: true });
  const writer = new Writer();
  for (let turn = 0; turn < 6_000; turn++) writer.user(`u${turn}`, `ask ${turn}`).says(`a${turn}`, `say ${turn}`);
  child.home.write(SESSION, dangling(writer).lines());
  const where = { sessionId: SESSION, cwd: CWD, mcpServers: [] };
  const { result } = await child.call(1, 'session/load', { ...where, ...BULK });
  const replay = result._meta['qwen.session.loadReplay'];
  expect(replay).toMatchObject({ v: 1, hasMore: true });
  expect(replay.updates).toHaveLength(10_000);
  expect(replay.anchorRecordId).toBe(replay.updates[0]._meta['qwen.session.recordId']);
  expect(replay.updates.at(-1)).toMatchObject({ toolCallId: 'c1', status: 'in_progress' });
  expect(result._meta[RESTORE]).toBe(true);
  const { updates } = (await child.call(2, 'qwen/session/loadUpdates', { sessionId: SESSION, cwd: CWD })).result;
  expect(updates).toHaveLength(10_000);
  expect(updates.at(-1)).toMatchObject({ toolCallId: 'c1', status: 'failed' });
});
