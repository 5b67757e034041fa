import { existsSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Daemon, daemonPlace } from '../support/daemon.ts';
import { tempFolder } from '../support/temp.ts';

const submit = (answers: unknown) => ({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers });
const FOREIGN = fileURLToPath(new URL('../support/foreign-child.mjs', import.meta.url));
const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/);

describe('a question over HTTP', () => {
  test.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '[DM-1, DM-2, DM-3, DM-6, DM-8, DM-11, BT-1, K001, K003, K014, K016, K023] survives %s of the daemon',
    async (signal) => {
      const place = daemonPlace();
      const first = await Daemon.start({ place });
      const asked = await first.ask();
      const exit = await first.kill(signal);
      expect(exit).toEqual(signal === 'SIGKILL' ? { code: null, signal } : { code: 0, signal: null });

      const second = await Daemon.start({ place });
      const path = `/session/${asked.sessionId}`;
      expect(await second.get(`${path}/status`)).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
      const loaded = await second.post(`${path}/load`, { cwd: place.cwd }, 'me');
      expect(loaded).toMatchObject({ status: 200, body: { hasActivePrompt: true, attached: false } });
      const events = await second.events(asked.sessionId);
      const { data } = await events.next('permission_request');
      expect(data.requestId).toEqual(UUID);
      expect(data.requestId).not.toBe(asked.requestId);
      expect((await second.get(`${path}/status`)).body).toMatchObject({
        isWaitingForUserQuestion: true,
        pendingInteractions: [{ requestId: data.requestId, questions: [{ answerKey: '0' }] }],
      });
      const old = await second.post(`${path}/permission/${asked.requestId}`, submit({ 0: 'Blue' }));
      // As in the reference its answer has no code: that it is a 404 which names the request is what a client goes by.
      expect(old).toMatchObject({ status: 404, body: { error: expect.any(String), requestId: asked.requestId } });
      expect(old.body).not.toHaveProperty('outcome');
      const voted = await second.post(`${path}/permission/${data.requestId}`, submit({ 0: 'Blue' }));
      expect(voted).toMatchObject({ status: 200, body: {} });
      expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
      const said = events.seen.map(({ data: { update } }) => update?.content?.text ?? '').join('');
      expect(said).toMatch(/Blue/);
      expect(await second.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    },
  );

  test('[DM-11] subscribers are told that the daemon stops, and their streams end', async () => {
    const daemon = await Daemon.start();
    const { events } = await daemon.ask();
    daemon.process.kill('SIGTERM');
    await events.ended;
    expect(events.seen.slice(-4).map(({ type }) => type)).toEqual([
      'permission_resolved',
      'turn_error',
      'prompt_cancelled',
      'session_died',
    ]);
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
  });

  test.skipIf(!existsSync('/proc/self/task'))(
    '[DM-10] nobody has to read what it and its child say: with its stderr closed it outlives its child',
    async () => {
      const env = { QWEN_CLI_ENTRY: FOREIGN, FOREIGN: '{"says":"started\\n"}' };
      const daemon = await Daemon.start({ args: ['--log-level', 'debug'], env });
      const { events } = await daemon.ask('ask');
      daemon.process.stderr.destroy();
      const pid = daemon.process.pid;
      const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
      process.kill(Number(child), 'SIGKILL');
      await events.ended;
      expect((await daemon.post('/session', {})).status).toBe(200);
      expect((await daemon.get('/health')).status).toBe(200);
      expect(await daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    },
  );

  test('[BT-11] a subscriber who comes late sees it under the same id', async () => {
    const daemon = await Daemon.start();
    const { sessionId, requestId } = await daemon.ask();
    const late = await daemon.events(sessionId);
    expect((await late.next('permission_request')).data.requestId).toBe(requestId);
    expect(late.text).toMatch(/^retry: 3000\n/);
  });

  test('[DM-7, K045] a client that disconnects decides nothing', async () => {
    const daemon = await Daemon.start();
    const { sessionId, clientId, requestId, events } = await daemon.ask();
    events.close();
    await events.ended;
    expect((await daemon.post(`/session/${sessionId}/detach`, {}, clientId)).status).toBe(204);
    expect((await daemon.get(`/session/${sessionId}/status`)).body).toMatchObject({
      pendingInteractions: [{ requestId }],
      hasActivePrompt: true,
    });
  });

  test('[DM-9] what a subscriber missed comes again after its Last-Event-ID', async () => {
    const daemon = await Daemon.start();
    const { sessionId, events } = await daemon.ask();
    const [first] = events.seen;
    const again = await daemon.events(sessionId, { 'last-event-id': String(first.id) });
    const { data } = await again.next('replay_complete');
    expect(again.seen.slice(0, -1)).toEqual(events.seen.slice(1));
    expect(data).toMatchObject({ replayedCount: events.seen.length - 1 });
  });
});

describe('starting', () => {
  test("[DM-13] the log level reaches the child by the environment: the reference's knows no option for it", async () => {
    const entry = join(
      tempFolder({ 'child.mjs': 'console.error(JSON.stringify([process.argv, process.env]))' }),
      'child.mjs',
    );
    const daemon = await Daemon.start({ args: ['--log-level', 'debug'], env: { QWEN_CLI_ENTRY: entry } });
    expect((await daemon.post('/session', {})).status).toBe(503);
    const [said = ''] = /\[\[.*\]/.exec(daemon.stderr) ?? [];
    const [argv, env] = JSON.parse(said);
    expect(argv.slice(2)).toEqual(['--acp', '--restore-ask-user-question', '--script', expect.any(String)]);
    expect(env).toMatchObject({ QWEN_ACP_LOG: 'debug' });
  });

  const failsWith = async (args: string[], words: RegExp, env: Record<string, string> = {}) => {
    const failed = Daemon.start({ args, env });
    await expect(failed).rejects.toThrow(words);
    await expect(failed).rejects.toThrow(/ended with 1/);
  };

  test.each<[string[], RegExp]>([
    [['--hostname', '0.0.0.0'], /needs a token/],
    [['--hostname', '192.0.2.1'], /needs a token/],
    [['--hostname', '192.0.2.1', '--token', 't'], /no address 192\.0\.2\.1/],
    [['--require-auth'], /needs a token/],
    [['--allow-origin', '*'], /needs a token/],
    [['--allow-origin', 'nonsense'], /must be an origin/],
    [['--port', '70000'], /--port must be a whole number/],
    [['--consensus-quorum', '0'], /--consensus-quorum must be/],
    [['--permission-strategy', 'loudest'], /Choices/],
  ])('[DM-12, CLI-4, K088] with %j is refused in clear words', async (args, words) => {
    await failsWith(args, words);
  });

  test('[DM-1] on a port in use says so and exits with 1', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as { port: number };
    await failsWith(['--port', String(port)], /in use already/);
  });

  test('[DM-7] takes the voting policy from the settings, the command line first', async () => {
    const place = daemonPlace();
    mkdirSync(join(place.cwd, '.qwen'));
    const settings = (policy: object) =>
      writeFileSync(join(place.cwd, '.qwen', 'settings.json'), JSON.stringify({ policy }));
    const policyOf = async (...args: string[]) =>
      (await (await Daemon.start({ place, args })).get('/capabilities')).body.policy.permission;
    settings({ permissionStrategy: 'consensus', consensusQuorum: 2 });
    expect(await policyOf()).toBe('consensus');
    expect(await policyOf('--permission-strategy', 'local-only')).toBe('local-only');
    settings({ permissionStrategy: 'loudest' });
    await expect(Daemon.start({ place })).rejects.toThrow(/policy\.permissionStrategy is none of/);
  });

  test('[DM-6] reads no session and resumes none', async () => {
    const place = daemonPlace();
    const first = await Daemon.start({ place });
    const { sessionId } = await first.ask();
    await first.kill();
    const second = await Daemon.start({ place });
    expect((await second.get(`/session/${sessionId}/status`)).status).toBe(404);
    expect((await second.get('/daemon/status')).body.runtime).toMatchObject({
      sessions: { active: 0 },
      permissions: { pending: 0 },
    });
  });
});

describe('what is kept from others', () => {
  test('[DM-12] no prompt, answer, token or header is in the log, at any level', async () => {
    const daemon = await Daemon.start({ args: ['--token', 'sEcReT-token', '--log-level', 'debug'] });
    const auth = { authorization: 'Bearer sEcReT-token' };
    const headers = { ...auth, 'x-qwen-client-id': 'header-vAlUe' };
    const { body } = await daemon.request('POST', '/session', {}, auth);
    const path = `/session/${body.sessionId}`;
    const events = await daemon.events(body.sessionId, auth);
    const prompt = [{ type: 'text', text: '[[ask1]] pRoMpT-words' }];
    await daemon.request('POST', `${path}/prompt`, { prompt }, auth);
    const { data } = await events.next('permission_request');
    await daemon.request('POST', `${path}/permission/${data.requestId}`, '{"pRoMpT-words', headers);
    await daemon.request('POST', `${path}/permission/${data.requestId}`, submit({ 0: 'aNsWeR-words' }), auth);
    await events.next('turn_complete');
    await daemon.kill('SIGTERM');
    expect(daemon.stderr).not.toMatch(/sEcReT|pRoMpT|aNsWeR|vAlUe/);
    expect(daemon.stdout).toBe(`qwen-acp serve listening on ${daemon.url}\n`);
  });

  test.skipIf(!existsSync('/proc/self/environ'))('[DM-12] the child does not know the token', async () => {
    const daemon = await Daemon.start({ env: { QWEN_SERVER_TOKEN: 'sEcReT' } });
    expect((await daemon.get('/capabilities')).status).toBe(401);
    const auth = { authorization: 'bearer sEcReT' };
    expect((await daemon.request('POST', '/session', undefined, auth)).status).toBe(200);
    const pid = daemon.process.pid;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    expect(children).toHaveLength(1);
    expect(readFileSync(`/proc/${children[0]}/environ`, 'utf8')).not.toMatch(/sEcReT/);
  });
});
