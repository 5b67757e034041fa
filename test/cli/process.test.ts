import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { chunk, startGeminiServer } from '../support/gemini-server.ts';
import { Home, Peer, recordedFrames } from '../support/peer.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

function run(line: string, input = '') {
  const args = line === '' ? [] : line.split(' ');
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], { input, encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('the executable', () => {
  const help = expect.stringMatching(/--restore-ask-user-question/);
  const oneLine = expect.stringMatching(/^[^\n]+\n$/);

  test.each<[string, object]>([
    ['', { status: 0, stdout: help, stderr: '' }],
    ['--help', { status: 0, stdout: help, stderr: '' }],
    ['--version', { status: 0, stdout: `${manifest.version}\n`, stderr: '' }],
    ['--acp --version', { status: 0, stdout: `${manifest.version}\n`, stderr: '' }],
    ['--restore-ask-user-question', { status: 0, stdout: help, stderr: oneLine }],
    ['--restore-ask-user-question --no-acp', { status: 0, stdout: help, stderr: oneLine }],
    ['--bogus', { status: 1, stdout: '', stderr: expect.stringMatching(/Unknown argument: bogus\n$/) }],
    ['--acp --bogus', { status: 1, stdout: '', stderr: expect.stringMatching(/Unknown argument: bogus\n$/) }],
    ['bogus', { status: 1, stdout: '', stderr: expect.stringMatching(/Unknown argument: bogus\n$/) }],
    ['--acp --log-level loud', { status: 1, stdout: '', stderr: expect.stringMatching(/Choices: "debug"/) }],
    ['serve --port 70000', { status: 1, stdout: '', stderr: expect.stringMatching(/--port must be a whole number/) }],
    ['--acp', { status: 0, stdout: '', stderr: '' }],
    ['--acp --no-help', { status: 0, stdout: '', stderr: '' }],
    ['--acp --experimental-lsp --restore-ask-user-question', { status: 0, stdout: '', stderr: '' }],
  ])('[CLI-1, CLI-2, CLI-3, CLI-4, CLI-5] qwen-acp %s', (line, expected) => {
    expect(run(line)).toEqual(expected);
  });

  test('[PF-1] what the child starts from holds neither yargs nor the SDK of a provider', () => {
    const dist = dirname(CLI);
    const chunk = (name: string) => readFileSync(join(dist, 'chunks', name), 'utf8');
    const programs = readdirSync(dist).filter((name) => name.endsWith('.js'));
    const start = programs.map((name) => readFileSync(join(dist, name), 'utf8')).join('');
    const marks = { child: 'session/prompt', yargs: 'showHelpOnFail', google: 'x-goog-api-key' };
    const holds = (text: string) =>
      Object.entries(marks).flatMap(([name, mark]) => (text.includes(mark) ? [name] : []));
    expect(holds(start)).toEqual(['child']);
    expect(holds(chunk('run.js'))).toContain('yargs');
    expect(holds(chunk('google-sdk.js'))).toEqual(['google']);
    expect(holds(chunk('gemini.js'))).toEqual([]);
    expect(Buffer.byteLength(start)).toBeLessThan(400_000);
  });
});

describe('a provider, through the real child', () => {
  test('[CLI-6] one that is named without its key refuses the session and names the variable', async () => {
    const peer = await Peer.start({ script: null, args: ['--auth-type', 'gemini'] });
    await expect(peer.newSession()).rejects.toMatchObject({
      code: -32000,
      message: expect.stringMatching(/GEMINI_API_KEY/),
    });
  });

  test('[CLI-6] without anything configured the session says that it is the scripted demo', async () => {
    const peer = await Peer.start({ script: null });
    await peer.prompt(await peer.newSession(), 'hello');
    expect(peer.said()).toMatch(/scripted demo model/);
  });

  test('[MD-1, MD-5] a question of Gemini without a call id is answered and goes back as the provider wrote it', async () => {
    const question = recordedFrames('k1-gemini').find(({ frame }) => frame?.method === 'session/request_permission');
    const call = { name: 'ask_user_question', args: question?.frame.params.toolCall.rawInput };
    const part = { functionCall: call, thoughtSignature: 'c2lnbmF0dXJl' };
    const server = await startGeminiServer(
      { chunks: [chunk([part], 'STOP')] },
      { chunks: [chunk([{ text: 'Thank ' }]), chunk([{ text: 'you.' }], 'STOP')] },
    );
    onTestFinished(() => server.close());
    const env = { GEMINI_API_KEY: 'k', GEMINI_MODEL: 'gemini-fake', GOOGLE_GEMINI_BASE_URL: server.url };
    const home = new Home();
    const first = await Peer.start({ home, script: null, restore: true, args: ['--auth-type=gemini'], env });
    const sessionId = await first.newSession();
    await first.askIn(sessionId, 'ask me');
    await first.kill();

    const second = await Peer.start({ home, script: null, restore: true, args: ['--auth-type=gemini'], env });
    await second.load(sessionId);
    const turn = second.restore(sessionId);
    const asked = await second.question();
    asked.answer({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { '0': 'Red' } });
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
    expect(second.said()).toMatch(/Thank you\.$/);

    const [asking, response] = server.requests[1]?.body.contents.slice(-2) ?? [];
    expect(asking).toEqual({ role: 'model', parts: [part] });
    expect(response.parts[0].functionResponse).toMatchObject({
      name: 'ask_user_question',
      response: { output: expect.stringMatching(/Red/) },
    });
  });

  test('[MD-4] a broken reply is retried without the client seeing it', async () => {
    const server = await startGeminiServer({ chunks: [] }, { chunks: [chunk([{ text: 'whole' }], 'STOP')] });
    onTestFinished(() => server.close());
    const env = { GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: server.url };
    const peer = await Peer.start({ script: null, env });
    expect(await peer.prompt(await peer.newSession(), 'hello')).toMatchObject({ stopReason: 'end_turn' });
    expect(peer.said()).toBe('whole');
    expect(server.requests).toHaveLength(2);
  });
});
