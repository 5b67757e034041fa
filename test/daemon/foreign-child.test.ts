import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { ServeOptions } from '../../src/daemon/ports.ts';
import { as, BLUE, Listener, Place, TEXT } from '../support/bridge.ts';

const FOREIGN = fileURLToPath(new URL('../support/foreign-child.mjs', import.meta.url));

/** A daemon whose child is an agent on the SDK that behaves like this. */
function foreign(behaviour: object, options: Partial<ServeOptions> & { readonly pingIntervalMs?: number } = {}) {
  vi.stubEnv('FOREIGN', JSON.stringify(behaviour));
  const place = new Place();
  return { place, bridge: place.bridge({ script: FOREIGN, childArgs: [], ...options }) };
}

test("[DM-13] QWEN_CLI_ENTRY names another child, and one without the reference's methods is served all the same", async () => {
  vi.stubEnv('FOREIGN', '{}');
  vi.stubEnv('QWEN_CLI_ENTRY', FOREIGN);
  const bridge = new Place().bridge({ script: '/nowhere/cli.js' });
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, TEXT('ask'), undefined, as(clientId));
  const asked = await listener.event('permission_request');
  expect(await bridge.status(sessionId)).toMatchObject({ isWaitingForUserQuestion: true });
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as(clientId));
  expect((await listener.event('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
  expect(await bridge.status(sessionId)).toMatchObject({ activeWorkState: 'unsupported' });
  await expect(bridge.continueSession(sessionId, as(clientId))).rejects.toMatchObject({
    status: 500,
    details: { code: -32601 },
  });
});

test('[DM-13] a cancel falls back to session/cancel, and a close to ending the turn', async () => {
  const { bridge } = foreign({});
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, TEXT('ask'), undefined, as(clientId));
  await listener.event('permission_request');
  await bridge.cancel(sessionId, as(clientId));
  expect((await listener.event('turn_complete')).data).toMatchObject({ stopReason: 'cancelled' });
  await bridge.cancel(sessionId, as(clientId));
  await bridge.close(sessionId, as(clientId));
  await listener.over;
  expect(listener.types().at(-1)).toBe('session_closed');
});

test('[DM-1, DM-3] a child that streams its replay: the updates come before the restore prompt, in the live journal', async () => {
  const { bridge } = foreign({ streams: 3, open: true });
  const id = '11111111-1111-4111-8111-111111111111';
  const loaded = await bridge.load(id, {}, as('me'));
  expect(loaded).toMatchObject({
    hasActivePrompt: true,
    compactedReplay: [],
    liveJournal: [{ id: 1 }, { id: 2 }, { id: 3 }],
    lastEventId: 3,
    state: {},
  });
  const listener = await Listener.of(bridge, id, { lastEventId: 0 });
  await listener.event('permission_request');
  expect(listener.types().slice(0, 3)).toEqual(Array(3).fill('session_update agent_message_chunk'));
});

test('[DM-9, PF-5] a burst of 2,000 updates cuts off no subscriber, and every one gets all of it in order', async () => {
  const { bridge } = foreign({ burst: 2_000 });
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listeners = await Promise.all(Array.from({ length: 10 }, () => Listener.of(bridge, sessionId)));
  await bridge.prompt(sessionId, TEXT('plain'), undefined, as(clientId));
  for (const listener of listeners) {
    await listener.event('turn_complete');
    expect(listener.events.map(({ id }) => id)).toEqual(Array.from({ length: 2_002 }, (_, at) => at + 1));
    expect(listener.events.at(-2)).toMatchObject({ data: { update: { content: { text: 'word 2000 ' } } } });
  }
});

test('[DM-1] a prompt that fails says so on the events, and the next one runs', async () => {
  const { bridge } = foreign({});
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  const { promptId } = await bridge.prompt(sessionId, TEXT('fail'), undefined, as(clientId));
  const failed = await listener.event('turn_error');
  expect(failed.data).toEqual({ sessionId, message: 'the model broke', code: -32603, promptId });
  expect(await bridge.status(sessionId)).toMatchObject({ hasTurnError: true, hasActivePrompt: false });
  await bridge.prompt(sessionId, TEXT('plain'), undefined, as(clientId));
  await listener.event('turn_complete');
  expect(await bridge.status(sessionId)).toMatchObject({ hasTurnError: false });
});

test('[DM-3] a resume waits ten seconds for a load of the same session, then comes again later', async () => {
  const { bridge } = foreign({ neverLoads: true });
  await bridge.createSession({}, as());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const id = '11111111-1111-4111-8111-111111111111';
  const loaded = bridge.load(id, {}, as('me')).catch((error: unknown) => error);
  const resumed = bridge.resume(id, {}, as('me')).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await resumed).toMatchObject({
    status: 409,
    code: 'restore_in_progress',
    retryAfter: expect.any(Number),
    details: { activeAction: 'load', requestedAction: 'resume' },
  });
  await vi.advanceTimersByTimeAsync(50_000);
  expect(await loaded).toMatchObject({ status: 504, code: 'agent_timeout' });
  expect(bridge.daemonStatus()).toMatchObject({ runtime: { sessions: { active: 1, admissionInFlight: 0 } } });
});

test('[DM-10] a request for a session that the daemon does not have is answered by nobody at once', async () => {
  const { bridge } = foreign({});
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, TEXT('ask for nobody'), undefined, as(clientId));
  expect((await listener.event('turn_complete')).data).toMatchObject({ stopReason: 'cancelled' });
  expect(bridge.daemonStatus()).toMatchObject({ runtime: { permissions: { pending: 0 } } });
});

test('[DM-1] what the child says of a session that cannot be is passed on as a status', async () => {
  const { bridge } = foreign({ refusesNew: true });
  await expect(bridge.createSession({}, as())).rejects.toMatchObject({
    status: 500,
    message: 'sign in first',
    details: { code: -32000 },
  });
  const unknown = '33333333-3333-4333-8333-333333333333';
  await expect(bridge.load(unknown, {}, as('me'))).rejects.toMatchObject({ status: 404, code: 'session_not_found' });
});

test('[DM-10] a child that does not answer initialize is given up and ended, and the next call starts another', async () => {
  const { bridge } = foreign({ neverInitializes: true }, { initializeTimeoutMs: 2_000 });
  await expect(bridge.createSession({}, as())).rejects.toMatchObject({ status: 504, code: 'agent_timeout' });
  vi.stubEnv('FOREIGN', '{}');
  expect(await bridge.createSession({}, as())).toMatchObject({ attached: false });
});

test.each([
  ['exits at once', { exitsAtOnce: true }],
  ['dies while it makes a session', { diesOnNew: true }],
])('[DM-10] a child that %s is a 503, and the next call starts another', async (_, behaviour) => {
  const { bridge } = foreign(behaviour);
  await expect(bridge.createSession({}, as())).rejects.toMatchObject({ status: 503, code: 'agent_channel_closed' });
  vi.stubEnv('FOREIGN', '{}');
  expect(await bridge.createSession({}, as())).toMatchObject({ attached: false });
});

test('[DM-10] a child that does not start is a 503 that says its exit code', async () => {
  const { bridge } = foreign({ exitsAtOnce: true });
  await expect(bridge.createSession({}, as())).rejects.toMatchObject({
    message: 'The agent process is gone: it did not start (exit code 3)',
  });
});

test.each([
  ['another nonce', { badNonce: true }],
  ['an error', { liveness: true }],
])('[DM-10] a child that answers a ping with %s is ended', async (_, behaviour) => {
  const { bridge } = foreign(behaviour, { pingIntervalMs: 20 });
  const { sessionId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await listener.over;
  expect(listener.events.at(-1)).toMatchObject({ type: 'session_died', data: { sessionId } });
});

test('[DM-11] a child that ignores the end of its input and SIGTERM is killed in time', async () => {
  const { bridge } = foreign({ ignoresSignals: true });
  await bridge.createSession({}, as());
  const began = performance.now();
  await bridge.shutdown();
  expect(performance.now() - began).toBeLessThan(4_500);
});

test('[DM-1] what the child says on stderr is passed on by the line, with its process named, cut where it never ends', async () => {
  const { bridge, place } = foreign({ says: `one\ntwö\n${'x'.repeat(20_000)}` });
  await bridge.createSession({}, as());
  await bridge.shutdown();
  const prefix = new RegExp(`^\\[serve pid=\\d+ cwd=${place.cwd}\\] `);
  expect(place.stderr.every((line) => prefix.test(line))).toBe(true);
  const lines = place.stderr.map((line) => line.replace(prefix, ''));
  expect(lines.slice(0, 2)).toEqual(['one', 'twö']);
  expect(lines[2]).toBe('x'.repeat(8_192));
});
