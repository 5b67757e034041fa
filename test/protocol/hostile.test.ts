import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CWD, submit } from '../support/peer.ts';
import { call, type Frame, RawChild } from '../support/raw-child.ts';
import { tempFolder } from '../support/temp.ts';

/** Says back what it was sent. */
const ECHO = { rules: [{ steps: [{ text: '{{prompt}}' }] }] };
const refusal = (code: number) => ({ jsonrpc: '2.0', id: null, error: expect.objectContaining({ code }) });
const list = (id: unknown) => call(id, 'session/list', {});

async function newSession(child: RawChild): Promise<string> {
  return (await child.call('new', 'session/new', { cwd: CWD, mcpServers: [] })).result.sessionId;
}

const prompt = (id: unknown, sessionId: string, text: string) =>
  call(id, 'session/prompt', { sessionId, prompt: [{ type: 'text', text }] });

function saidIn(frames: readonly Frame[]): string {
  return frames
    .flatMap(({ params }) => params?.update ?? [])
    .flatMap(({ sessionUpdate, content }) => (sessionUpdate === 'agent_message_chunk' ? content.text : []))
    .join('');
}

test('[ACP-5] junk, batches and ids of every kind have their defined answer, in order, and the child serves on', async () => {
  const child = new RawChild();
  const rows: readonly (readonly [Frame | string, readonly unknown[]])[] = [
    [`\u{feff}${JSON.stringify(list(1))}\r`, [1]],
    ['{"jsonrpc":"2.0","id":1,"method":"sess', [refusal(-32700)]],
    ['\u{feff}{}', [refusal(-32700)]],
    ['\u{0}', [refusal(-32700)]],
    [Buffer.from([0xff, 0xfe, 0x00]).toString('latin1'), [refusal(-32700)]],
    [JSON.stringify([list(2), list(3)]), [refusal(-32600)]],
    ['[]', [refusal(-32600)]],
    ['null', [refusal(-32600)]],
    [list(null), [refusal(-32600)]],
    [list({ a: 1 }), [refusal(-32600)]],
    [{ id: 4, method: 'session/list' }, [refusal(-32600)]],
    [{ jsonrpc: '2.0', id: 4 }, []],
    [{ jsonrpc: '2.0', id: 0, result: {} }, []],
    [{ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }, []],
    [{ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: null } }, []],
    [{ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 'last' } }, []],
    [' \t\r', []],
    [list(''), ['']],
    [list(-0.5), [-0.5]],
  ];
  const lines = rows.map(([line]) => line);
  child.send(...lines, list('last'));
  const found = await child.until('last');
  // Refusals are written at once, answers when their handlers are done: each kind keeps its own order.
  const expected = rows.flatMap(([, frames]) => frames);
  expect(found.filter(({ id }) => id === null)).toEqual(expected.filter((frame) => typeof frame === 'object'));
  const answered = expected.filter((frame) => typeof frame !== 'object');
  expect(found.filter(({ id }) => id !== null)).toEqual(
    [...answered, 'last'].map((id) => ({ jsonrpc: '2.0', id, result: { sessions: [] } })),
  );

  child.send(list(7), list('7'), list(7), list('last'));
  expect((await child.until('last')).map(({ id }) => id)).toEqual([7, '7', 7, 'last']);
  expect(child.stderr).toBe('');
});

test('[ACP-5, TR-1, K082] text that comes byte by byte reaches the transcript and the model as it was', async () => {
  const child = new RawChild({ script: ECHO });
  const sessionId = await newSession(child);
  const text = 'é 漢字 😀 \u{2028} "\\ \u{0007} \u{feff}end';
  for (const byte of Buffer.from(`${JSON.stringify(prompt(1, sessionId, text))}\r\n`)) {
    await new Promise<void>((resolve) => child.child.stdin.write(Buffer.of(byte), () => resolve()));
  }
  const frames = await child.until(1);
  expect(frames.at(-1).result.stopReason).toBe('end_turn');
  expect(saidIn(frames)).toBe(text);
  const messages = child.home.records(sessionId).flatMap(({ message }) => (message ? [message.parts] : []));
  expect(messages).toEqual([[{ text }], [{ text }]]);
});

test('[ACP-5, K083] a long line arrives whole; one over the limit is refused and the connection lives', async () => {
  const child = new RawChild({ script: ECHO });
  const sessionId = await newSession(child);
  const long = '漢'.repeat(2 << 20);
  child.send(prompt(1, sessionId, long));
  expect(saidIn(await child.until(1)) === long).toBe(true);
  child.send(Buffer.alloc((64 << 20) + 1, '1'), list('last'));
  const [refused, answer] = await child.until('last');
  expect(refused).toEqual(refusal(-32600));
  expect(answer.result.sessions).toHaveLength(1);
  expect(child.stderr).toMatch(/^.*longer than 67108864 bytes.*\n$/);
});

test('[ACP-5, RS-7] only the answer to the question itself answers it; it counts once', async () => {
  const child = new RawChild({ restore: true });
  const sessionId = await newSession(child);
  child.send(prompt('turn', sessionId, '[[ask1]]'));
  let asked = await child.next();
  while (asked.method !== 'session/request_permission') asked = await child.next();
  const answer = (id: unknown, label: string) => ({ jsonrpc: '2.0', id, result: submit({ 0: label }) });
  const number = Number(/\d+$/.exec(asked.id)?.[0]);
  for (const id of [number, `${number}`, 0, null, `${asked.id}0`, `x${asked.id}`, asked.id.toUpperCase()]) {
    child.send(answer(id, 'Blue'));
  }
  child.send(JSON.stringify([answer(asked.id, 'Blue')]), list('still waiting'));
  expect((await child.until('still waiting')).map(({ id }) => id)).toEqual([null, 'still waiting']);
  child.send(answer(asked.id, 'Red'), answer(asked.id, 'Blue'), {
    jsonrpc: '2.0',
    id: asked.id,
    error: { code: 1, message: 'no' },
  });
  expect(saidIn(await child.until('turn'))).toContain('Red');
  expect(child.home.bytes(sessionId).toString()).not.toContain('**Colour**: Blue');
});

test('[ACP-5, ACP-9] the last line is served without its newline; the child ends by itself', async () => {
  const child = new RawChild();
  child.child.stdin.end(JSON.stringify(list('last')));
  expect((await child.until('last')).at(-1).result).toEqual({ sessions: [] });
  expect(await child.exited).toEqual({ code: 0, signal: null });
  expect(child.noise).toEqual([]);
});

test('[CLI-4] stdout carries frames and nothing else, whatever prints', async () => {
  // What a dependency might do, from the moment the child listens on.
  const noisy = `process.stdin.on('newListener', (event) => event === 'data' && setInterval(() => {
    console.log('noise'); console.info('noise'); console.table([1]); process.stdout.write('noise');
    console.error('heard'); process.emitWarning('noise');
  }, 1).unref());`;
  const folder = tempFolder({ 'noisy.cjs': noisy });
  const child = new RawChild({
    restore: true,
    args: ['--log-level', 'debug'],
    env: { NODE_OPTIONS: `--require ${join(folder, 'noisy.cjs')}`, NODE_DEBUG: 'stream,net,timer,http' },
  });
  const sessionId = await newSession(child);
  child.send(prompt('turn', sessionId, '[[stream]]'));
  while (!child.stderr.includes('heard')) await once(child.child.stderr, 'data');
  child.send({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } });
  expect((await child.until('turn')).at(-1).result).toEqual({ stopReason: 'cancelled' });
  child.child.stdin.end();
  expect((await child.exited).code).toBe(0);
  expect(child.noise).toEqual([]);
  expect(child.stderr).toContain('noise');
});
