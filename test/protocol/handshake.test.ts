import { expect, test } from 'vitest';
import { CWD, recordedFrames, submit } from '../support/peer.ts';
import { call, type Frame, RawChild } from '../support/raw-child.ts';

const GUARD = 'qwen-code/external-tool-guard-ready';
const LIVENESS = 'qwen.daemon.channelLiveness';
const DAEMON = { name: 'qwen-serve-bridge', version: '0' };

const initialize = async (child: RawChild, params: object): Promise<Frame> =>
  (await child.call('init', 'initialize', { protocolVersion: 1, ...params })).result;

test('[ACP-1] initialize answers its own version to every other, who it is, and exactly what works', async () => {
  const child = new RawChild();
  for (const protocolVersion of [1, 0, 2, 65_535]) {
    const result = await initialize(child, { protocolVersion });
    expect(result).toEqual({
      protocolVersion: 1,
      agentInfo: { name: 'qwen-acp', title: expect.any(String), version: expect.stringMatching(/^\d+\.\d+\.\d+/) },
      authMethods: expect.any(Array),
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
      },
    });
  }
  for (const protocolVersion of [-1, 65_536, 1.5, '1', null, undefined]) {
    const { error } = await child.call('x', 'initialize', { protocolVersion });
    expect(error, String(protocolVersion)).toMatchObject({ code: -32602 });
    expect(error.message).toContain('protocolVersion');
  }
});

test('[ACP-1] no way to authenticate is of type terminal, whatever the client can', async () => {
  const child = new RawChild();
  for (const clientCapabilities of [
    {},
    { terminal: true, _meta: { 'terminal-auth': true } },
    { auth: { terminal: true } },
  ]) {
    const { authMethods } = await initialize(child, { clientCapabilities });
    expect(authMethods.length).toBeGreaterThan(0);
    for (const method of authMethods) {
      expect(Object.keys(method).sort()).toEqual(['description', 'id', 'name']);
    }
  }
});

test('[ACP-1] a method before initialize is served as for a client without capabilities', async () => {
  const child = new RawChild({ restore: true });
  const id = child.home.place('c0.dangling');
  child.send(call(1, 'session/load', { sessionId: id, cwd: CWD }));
  const loaded = await child.until(1);
  expect(loaded.at(-1).result._meta['qwen.daemon.restoreAskUserQuestion']).toBe(true);
  child.send(
    call(2, 'session/prompt', { sessionId: id, prompt: [], _meta: { 'qwen.daemon.restoreAskUserQuestion': true } }),
  );
  const asked = await questionOf(child);
  child.send({ jsonrpc: '2.0', id: asked.id, result: submit({ 0: 'Red' }) });
  const frames = await child.until(2);
  expect(frames.map(({ method, id: own }) => method ?? own)).toEqual([
    ...Array(frames.length - 1).fill('session/update'),
    2,
  ]);
});

test('[ACP-12] the handshake keys are given when the client or the environment asks for them, and only then', async () => {
  const plain = new RawChild();
  expect(await initialize(plain, { clientInfo: DAEMON })).not.toHaveProperty('_meta');
  expect((await initialize(plain, { _meta: { [LIVENESS]: { v: 1 } } }))._meta).toEqual({ [LIVENESS]: { v: 1 } });
  for (const other of [{ v: 2 }, true, 1, null]) {
    expect(await initialize(plain, { _meta: { [LIVENESS]: other } })).not.toHaveProperty('_meta');
  }

  const [recorded] = recordedFrames('h2-crash-load-vote.tap').filter(({ frame }) => frame?.method === 'initialize');
  const guarded = new RawChild({ env: { QWEN_CODE_PRIVATE_EXTERNAL_TOOL_GUARD: 'required-v1' } });
  const result = await initialize(guarded, recorded?.frame.params);
  expect(result._meta).toMatchObject({ [GUARD]: 'required-v1', [LIVENESS]: { v: 1 } });
  // The reference's daemon sends a number, counted from 0, and ends a child that gives anything else back.
  for (const nonce of [0, 1, 2 ** 53 - 1, 'n-1']) {
    const pong = await guarded.call(`ping ${nonce}`, 'qwen/status/channel/ping', { v: 1, nonce });
    expect(pong.result).toEqual({ v: 1, nonce });
  }
});

test('[ACP-12] what the daemon asks at start-up and every few seconds is answered, under both names', async () => {
  const child = new RawChild();
  for (const prefix of ['', '_']) {
    const ask = async (name: string, params: unknown) =>
      (await child.call(name, `${prefix}qwen/${name}`, params)).result;
    expect(await ask('status/workspace/skills', { cwd: CWD })).toMatchObject({ v: 1, workspaceCwd: CWD, skills: [] });
    expect(await ask('status/workspace/mcp', { cwd: CWD })).toMatchObject({ v: 1, workspaceCwd: CWD, servers: [] });
    expect(await ask('control/workspace/mcp/initialize', { cwd: CWD })).toEqual({ accepted: true });
    expect(await ask('status/workspace/resource', {})).toEqual({
      rssBytes: expect.any(Number),
      cpuPercent: expect.any(Number),
      heap: { usedBytes: expect.any(Number), totalBytes: expect.any(Number) },
    });
    expect(await ask('status/channel/ping', { v: 1, nonce: prefix })).toEqual({ v: 1, nonce: prefix });
  }
});

test('[ACP-12, RS-8] the status of a session is told in the shapes of its routes, and changes nothing', async () => {
  const child = new RawChild({ restore: true });
  const saved = child.home.place('e5b-continue-noflag');
  const sessionId = child.home.place('c0.dangling');
  const before = child.home.bytes(sessionId);
  await child.call('load', 'session/load', { sessionId, cwd: CWD, mcpServers: [] });
  const ask = async (name: string, id = sessionId) =>
    (await child.call(name, `qwen/${name}`, { sessionId: id, cwd: CWD })).result;
  const own = { v: 1, sessionId };
  // The question is asked again, so there is nothing to go on with.
  expect(await ask('status/session/context')).toMatchObject({
    ...own,
    recovery: { kind: 'clean', canContinue: false },
  });
  const { usage, formattedText } = await ask('status/session/context_usage');
  expect(usage).toMatchObject({
    modelName: 'fake-model',
    contextWindowSize: 0,
    isEstimated: false,
    showDetails: false,
  });
  expect(usage.totalTokens).toBe(11);
  expect(formattedText).toContain('took 11 tokens');
  expect(await ask('status/session/stats')).toMatchObject({ ...own, promptCount: 1, tools: { totalCalls: 0 } });
  expect(await ask('status/session/tasks')).toMatchObject({ ...own, tasks: [] });
  expect(await ask('status/session/agents')).toMatchObject({ ...own, tasks: [] });
  expect(await ask('status/session/supported_commands')).toEqual({
    ...own,
    availableCommands: ['help', 'model', 'compress'].map((name) => expect.objectContaining({ name })),
  });
  expect(await ask('control/session/goal/get')).toMatchObject({ active: null, snapshot: { goal: null } });
  expect(child.home.bytes(sessionId)).toEqual(before);

  // A transcript can be read of a session that is not live.
  const transcript = await ask('status/session/transcript', saved);
  expect(transcript).toMatchObject({ v: 1, sessionId: saved, hasMore: false });
  const { updates } = await ask('session/loadUpdates', saved);
  expect(transcript.events.map(({ data }: { data: unknown }) => data)).toEqual(updates);
  expect((await child.call('x', 'session/prompt', { sessionId: saved, prompt: [] })).error.code).toBe(-32002);
});

test.each<[string, object | undefined, (updates: unknown[], transcript: string) => void]>([
  [
    'hands over what the person typed meanwhile',
    { result: { messages: ['and be quick'], items: [], hasQueuedPrompt: false } },
    (updates, transcript) => {
      const content = { type: 'text', text: 'and be quick' };
      expect(updates).toContainEqual(expect.objectContaining({ sessionUpdate: 'user_message_chunk', content }));
      expect(transcript).toContain('and be quick');
      // The scripted model echoes a function response that comes last, and says this to a person's message.
      expect(JSON.stringify(updates)).toContain('PLAIN REPLY');
    },
  ],
  ['does not know the method', { error: { code: -32601, message: 'no' } }, () => {}],
  ['answers with junk', { result: [7] }, () => {}],
  ['never answers', undefined, () => {}],
])(
  '[ACP-12, ACP-13] between answer and model a daemon is asked for its queue; the turn goes on where it %s',
  async (_, reply, check) => {
    const child = new RawChild({ restore: true });
    const { asked, sessionId } = await askingAs(child, DAEMON);
    child.send({ jsonrpc: '2.0', id: asked.id, result: submit({ 0: 'Red' }) });
    let frame = await child.next();
    while (frame.method !== 'craft/drainMidTurnQueue') {
      expect(frame.method).toBe('session/update');
      frame = await child.next();
    }
    expect(frame.params).toEqual({ sessionId });
    if (reply !== undefined) child.send({ jsonrpc: '2.0', id: frame.id, ...reply });
    const started = performance.now();
    const rest = await child.until('turn');
    expect(rest.at(-1).result.stopReason).toBe('end_turn');
    if (reply === undefined) {
      expect(performance.now() - started).toBeLessThan(4_000);
      expect(rest).toContainEqual({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: frame.id } });
    }
    const updates = rest.flatMap(({ params }) => params?.update ?? []);
    check(updates, child.home.bytes(sessionId).toString());
  },
);

test('[ACP-12, K077] a client that is no daemon is sent nothing that the protocol does not know', async () => {
  const child = new RawChild({ restore: true });
  const { asked } = await askingAs(child, { name: 'an editor', version: '1' });
  child.send({ jsonrpc: '2.0', id: asked.id, result: submit({ 0: 'Red' }) });
  const methods = (await child.until('turn')).flatMap(({ method }) => method ?? []);
  expect(new Set(methods)).toEqual(new Set(['session/update']));
});

async function askingAs(child: RawChild, clientInfo: object) {
  await initialize(child, { clientInfo });
  const { result } = await child.call('new', 'session/new', { cwd: CWD, mcpServers: [] });
  const { sessionId } = result;
  child.send(call('turn', 'session/prompt', { sessionId, prompt: [{ type: 'text', text: '[[ask1]]' }] }));
  return { sessionId, asked: await questionOf(child) };
}

async function questionOf(child: RawChild): Promise<Frame> {
  for (;;) {
    const frame = await child.next();
    if (frame.method === 'session/request_permission') return frame;
  }
}
