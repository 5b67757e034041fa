import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { chunk, type GeminiAnswer, startGeminiServer } from '../support/gemini-server.ts';
import { CWD, Home, Peer, RESTORE, submit, unattended } from '../support/peer.ts';
import { call as request, RawChild } from '../support/raw-child.ts';
import { asks, COLOUR, call, type Entry, modelSays, place, toolAnswers, userSays } from '../support/sessions.ts';

const FINE: GeminiAnswer = { chunks: [chunk([{ text: 'fine' }], 'STOP')] };
const REFUSED: GeminiAnswer = {
  status: 400,
  body: { error: { code: 400, message: 'no', status: 'INVALID_ARGUMENT' } },
};

const question = modelSays(asks('call_1', COLOUR));
const background = call('call_0', 'run_shell_command', { command: 'npm run watch', is_background: true });

/** Where the records were written, and what the model is to be told about it; nothing where nothing has changed. */
const HISTORIES: Readonly<Record<string, readonly [readonly Entry[], RegExp | undefined]>> = {
  'nothing changed': [[userSays('go'), question], undefined],
  'another folder': [
    [
      { ...userSays('go'), cwd: '/srv/old' },
      { ...question, cwd: '/srv/old' },
    ],
    /\/srv\/old.*\/srv\/project/,
  ],
  'another branch': [[userSays('go'), { ...question, gitBranch: 'feature-x' }], /feature-x/],
  'background work of this turn': [
    [userSays('go'), modelSays(background), toolAnswers('call_0', { output: 'started' }), question],
    /npm run watch/,
  ],
  'background work of an earlier turn': [
    [userSays('go'), modelSays(background), toolAnswers('call_0', { output: 'started' }), userSays('next'), question],
    undefined,
  ],
};

async function serve(...answers: GeminiAnswer[]) {
  const server = await startGeminiServer(...answers);
  onTestFinished(() => server.close());
  const env = { GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: server.url };
  const args = ['--auth-type', 'gemini', '--model', 'gemini-test'];
  return { server, options: { home: new Home(), restore: true, script: null, args, env } };
}

async function start(...answers: GeminiAnswer[]) {
  const { server, options } = await serve(...answers);
  const { home } = options;
  const peer = await Peer.start(options);
  // biome-ignore lint/suspicious/noExplicitAny: a provider's request
  const lastParts = (): any[] => server.requests.at(-1)?.body.contents.at(-1).parts;
  return { home, peer, lastParts };
}

async function answerAgain(peer: Peer, sessionId: string): Promise<unknown> {
  await peer.load(sessionId);
  const turn = peer.restore(sessionId);
  (await peer.question()).answer(submit({ 0: 'Red' }));
  return await turn.catch((error: Error) => error);
}

test('[RS-4] what changed since the question is told once, in the message behind the real answer', async () => {
  const { home, peer, lastParts } = await start(FINE);
  for (const [name, [entries, notice]] of Object.entries(HISTORIES)) {
    const sessionId = place(home, ...entries);
    await answerAgain(peer, sessionId);
    const [response, ...notices] = lastParts();
    expect(response.functionResponse.id, name).toBe('call_1');
    expect(notices, name).toEqual(notice ? [{ text: expect.stringMatching(notice) }] : []);
    await peer.prompt(sessionId, 'next');
    expect(lastParts(), name).toEqual([{ text: 'next' }]);
  }
});

test('[RS-4, BT-10] in a process that lives on, what has changed since the question is told, and nothing older', async () => {
  const asking = (id: string): GeminiAnswer => ({ chunks: [chunk([asks(id, COLOUR)], 'STOP')] });
  const { home, peer, lastParts } = await start(asking('call_1'), FINE, asking('call_2'), FINE);
  const cwd = join(home.path, 'repository');
  mkdirSync(join(cwd, '.git'), { recursive: true });
  const checkOut = (branch: string) => writeFileSync(join(cwd, '.git', 'HEAD'), `ref: refs/heads/${branch}\n`);
  checkOut('first');
  const sessionId = await peer.newSession(cwd);
  for (const [words, notices] of [
    ['go', [{ text: expect.stringMatching(/first.*second/) }]],
    ['again', []],
  ] as const) {
    const { turn, asked } = await peer.askIn(sessionId, words);
    asked.answer(unattended('timeout'));
    await turn;
    checkOut('second');
    await peer.request('session/load', { sessionId, cwd, mcpServers: [] });
    const again = peer.restore(sessionId);
    (await peer.question()).answer(submit({ 0: 'Red' }));
    expect(await again).toEqual({ stopReason: 'end_turn' });
    expect(lastParts().slice(1)).toEqual(notices);
  }
  const branches = readFileSync(home.file(sessionId, cwd), 'utf8').match(/"gitBranch":"\w+"/g);
  expect(new Set(branches)).toEqual(new Set(['"gitBranch":"first"', '"gitBranch":"second"']));
});

test('[RS-4] a notice that did not reach the model is told with the next message', async () => {
  const { home, peer, lastParts } = await start(REFUSED, FINE);
  const sessionId = place(home, userSays('go'), { ...question, gitBranch: 'feature-x' });
  expect(await answerAgain(peer, sessionId)).toBeInstanceOf(Error);
  const notice = { text: expect.stringMatching(/feature-x/) };
  expect(lastParts().slice(1)).toEqual([notice]);
  await peer.request('session/prompt', { sessionId, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } });
  expect(lastParts()).toEqual([{ functionResponse: expect.objectContaining({ id: 'call_1' }) }, notice]);
  await peer.prompt(sessionId, 'next');
  expect(lastParts()).toEqual([{ text: 'next' }]);
});

test('[RS-4, RS-0, ACP-12] what a daemon has queued meanwhile comes behind the answer, and hides no notice', async () => {
  const { server, options } = await serve(FINE);
  const child = new RawChild(options);
  const work = [modelSays(background), toolAnswers('call_0', { output: 'started' })];
  const sessionId = place(options.home, userSays('go'), ...work, question);
  await child.call(1, 'initialize', { protocolVersion: 1, clientInfo: { name: 'qwen-serve-bridge', version: '0' } });
  await child.call(2, 'session/load', { sessionId, cwd: CWD, mcpServers: [] });
  const announced = await child.next();
  expect(announced.params.update.sessionUpdate).toBe('available_commands_update');
  child.send(request(3, 'session/prompt', { sessionId, prompt: [], _meta: { [RESTORE]: true } }));
  const asked = await child.next();
  child.send({ jsonrpc: '2.0', id: asked.id, result: submit({ 0: 'Red' }) });
  expect(await child.next()).toMatchObject({ params: { update: { status: 'completed' } } });
  const drain = await child.next();
  expect(drain.method).toBe('craft/drainMidTurnQueue');
  child.send({ jsonrpc: '2.0', id: drain.id, result: { messages: ['and be quick'] } });
  expect((await child.until(3)).at(-1).result).toEqual({ stopReason: 'end_turn' });
  // biome-ignore lint/suspicious/noExplicitAny: a provider's request
  const parts: any[] = server.requests.flatMap(({ body }) => body.contents.slice(-2).flatMap((one: any) => one.parts));
  expect(parts).toEqual([
    { functionResponse: expect.objectContaining({ id: 'call_1' }) },
    { text: 'and be quick' },
    { text: expect.stringMatching(/npm run watch/) },
  ]);
});
