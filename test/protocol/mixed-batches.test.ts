import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Daemon, daemonPlace } from '../support/daemon.ts';
import { callIds, cards, responseIds } from '../support/evidence.ts';
import { ask, Home, Peer, RESTORE, submit } from '../support/peer.ts';
import { processesWith } from '../support/processes.ts';
import { resultsOnDisk } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { callScript } from '../support/tool-child.ts';

const QUESTION = ask('Which colour?', 'Colour', ['Red', 'Blue']);
const COMMAND = { call: 'run_shell_command', args: { command: 'echo ran >> ran.txt' } };
const ONCE = submit(undefined);
const RED = submit({ 0: 'Red' });

/** Each batch, what is answered before the kill, and what that leaves and comes to. */
const CASES = {
  'a command that ran, a question that hangs': {
    steps: [COMMAND, QUESTION],
    answers: [ONCE],
    ran: 'ran\n',
    repaired: ['success/success output', 'error/not_started error'],
  },
  'a question that hangs, a command behind it': {
    steps: [QUESTION, COMMAND],
    answers: [],
    ran: '',
    repaired: ['error/not_started error', 'error error'],
  },
  'a question that was answered, a command that waits to be allowed': {
    steps: [QUESTION, COMMAND],
    answers: [RED],
    ran: '',
    repaired: ['success/success output', 'error error'],
  },
} as const;

const script = callScript(Object.fromEntries(Object.entries(CASES).map(([name, { steps }]) => [name, steps])));
const ranIn = (cwd: string) => (existsSync(join(cwd, 'ran.txt')) ? readFileSync(join(cwd, 'ran.txt'), 'utf8') : '');

/** Each call of a session has one response. */
function expectRepaired(home: Home, sessionId: string, cwd: string, repaired: readonly string[]): void {
  const records = home.records(sessionId, cwd);
  expect(callIds(records)).toHaveLength(2);
  expect(responseIds(records).toSorted()).toEqual(callIds(records).toSorted());
  expect(resultsOnDisk(home, sessionId, cwd)).toEqual(repaired);
}

test('[TL-1, EL-1, LS-1, BT-5, TR-5] over stdio: a killed batch of a question and a real command is repaired, never restored, and runs nothing again', async () => {
  const home = new Home();
  const left: { id: string; cwd: string; name: keyof typeof CASES }[] = [];
  for (const [name, { answers, ran }] of Object.entries(CASES) as [
    keyof typeof CASES,
    (typeof CASES)[keyof typeof CASES],
  ][]) {
    const cwd = realpathSync(tempFolder());
    const peer = await Peer.start({ home, script, restore: true });
    const id = await peer.newSession(cwd);
    peer.prompt(id, `[[${name}]]`).catch(() => {});
    for (const answer of answers) (await peer.question()).answer(answer);
    await peer.question();
    expect(ranIn(cwd), name).toBe(ran);
    await peer.kill();
    left.push({ id, cwd, name });
  }
  const peer = await Peer.start({ home, script, restore: true });
  for (const { id, cwd, name } of left) {
    const before = home.bytes(id, cwd);
    const loaded = await peer.request('session/load', { sessionId: id, cwd, mcpServers: [] });
    expect(loaded._meta?.[RESTORE], name).toBeUndefined();
    expect(
      cards(peer, id).filter((card) => card.startsWith('tool_call_update')),
      name,
    ).toHaveLength(2);
    expect(await peer.restore(id), name).toEqual({ stopReason: 'end_turn' });
    expect(home.bytes(id, cwd), name).toEqual(before);
    expect(await peer.prompt(id, 'and now?'), name).toMatchObject({ stopReason: 'end_turn' });
    expectRepaired(home, id, cwd, CASES[name].repaired);
    expect(ranIn(cwd), name).toBe(CASES[name].ran);
  }
  expect(peer.unanswered).toBe(0);
});

test('[TL-1, EL-1, LS-1, BT-5, DM-3, DM-13] through the daemon: so is one whose child, or whose daemon was killed', async () => {
  const place = daemonPlace();
  const { home, cwd } = place;
  const pids = () => processesWith(`HOME=${home.path}`);
  const first = await Daemon.start({ place, script });
  const { sessionId, clientId, requestId, events } = await first.ask('[[a command that ran, a question that hangs]]');
  await first.post(`/session/${sessionId}/permission/${requestId}`, ONCE, clientId);
  await events.next('permission_request');
  const waiting = await first.ask('[[a question that hangs, a command behind it]]');
  expect(ranIn(cwd)).toBe('ran\n');
  for (const pid of pids().filter((pid) => pid !== first.process.pid)) process.kill(pid, 'SIGKILL');
  await Promise.all([events.ended, waiting.events.ended]);

  const load = (daemon: Daemon, id: string) => daemon.post(`/session/${id}/load`, { cwd }, 'me');
  expect(await load(first, sessionId)).toMatchObject({ status: 200, body: { hasActivePrompt: false } });
  await first.kill();
  const second = await Daemon.start({ place, script });
  for (const [id, repaired] of [
    [sessionId, CASES['a command that ran, a question that hangs'].repaired],
    [waiting.sessionId, CASES['a question that hangs, a command behind it'].repaired],
  ] as const) {
    const loaded = await load(second, id);
    expect(loaded).toMatchObject({ status: 200, body: { hasActivePrompt: false } });
    expect((await second.get(`/session/${id}/status`)).body).toMatchObject({ pendingInteractionCount: 0 });
    const again = await second.events(id, { 'last-event-id': String(loaded.body.lastEventId) });
    const prompt = [{ type: 'text', text: 'and now?' }];
    expect((await second.post(`/session/${id}/prompt`, { prompt }, loaded.body.clientId)).status).toBe(202);
    expect((await again.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
    expect(again.seen.filter(({ type }) => type === 'permission_request')).toEqual([]);
    expectRepaired(home, id, cwd, repaired);
  }
  expect(ranIn(cwd)).toBe('ran\n');
});
