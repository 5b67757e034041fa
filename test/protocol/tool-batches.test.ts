import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cards, kinds, responseIds } from '../support/evidence.ts';
import { ask, Home, Peer, RESTORE, submit, unattended } from '../support/peer.ts';
import { resultsOnDisk, saidIn } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { callScript, distWithTestTools } from '../support/tool-child.ts';

const cli = distWithTestTools();
const QUESTION = ask('Which colour?', 'Colour', ['Red', 'Blue']);
const COMMAND = { call: 'run_shell_command', args: { command: 'echo ran >> ran.txt' } };
const RAN = 'success/success output';
/** A question that nobody answered, and a call of which nothing is known. */
const OPEN = 'error/not_started error';
const LOST = 'error error';

const script = callScript({
  'command first': [COMMAND, QUESTION],
  'question first': [QUESTION, COMMAND],
  read: [{ call: 'unsuccessful' }, QUESTION, COMMAND],
  wait: [{ call: 'wait' }, COMMAND],
  'command, watch': [COMMAND, { call: 'watch' }],
  'command, wait': [COMMAND, { call: 'wait' }],
  'watch, command': [{ call: 'watch' }, COMMAND],
  reads: [{ call: 'unsuccessful' }, { call: 'watch' }, COMMAND],
  deaf: [{ call: 'deaf' }],
  odd: [
    { call: 'nothing_such' },
    { call: 'broken', args: { at: 'prepare' } },
    { call: 'broken' },
    { call: 'faulty', args: { type: 'shell_execute_error' } },
    { call: 'unsuccessful' },
    { call: 'mcp__srv__peek' },
    { call: 'mcp__srv__peek', args: { unreadable_arguments: '{"path": ' } },
  ],
  plan: [{ call: 'todo_write', args: { todos: [] } }],
  roots: [{ call: 'roots' }],
  long: [{ call: 'run_shell_command', args: { command: "printf x; printf '😀%.0s' {1..20000}" } }],
  'ask, roots': [{ call: 'roots' }, QUESTION, { call: 'roots' }],
});

/** A child whose sessions ask for nothing but questions. */
async function start(home = new Home()) {
  const peer = await Peer.start({ home, cli, script, restore: true });
  return { home, peer };
}

async function yolo(peer: Peer, cwd: string) {
  const id = await peer.newSession(cwd);
  await peer.request('session/set_mode', { sessionId: id, modeId: 'yolo' });
  return id;
}

const ranIn = (cwd: string) => (existsSync(join(cwd, 'ran.txt')) ? readFileSync(join(cwd, 'ran.txt'), 'utf8') : '');
const loadIn = (peer: Peer, sessionId: string, cwd: string) =>
  peer.request('session/load', { sessionId, cwd, mcpServers: [] });

const MIXED = {
  'command first': { ran: 'ran\n', left: [RAN], repaired: [RAN, OPEN] },
  'question first': { ran: '', left: [], repaired: [OPEN, LOST] },
} as const;

for (const [order, { ran, left, repaired }] of Object.entries(MIXED)) {
  test(`[TL-1, EL-1, LS-1, BT-5, TR-5, K021, K055] a mixed batch (${order}) that is killed while its question waits is repaired and never run again`, async () => {
    const cwd = tempFolder();
    const { home, peer: before } = await start();
    const id = await yolo(before, cwd);
    await before.askIn(id, `[[${order}]]`);
    await before.kill();
    expect(resultsOnDisk(home, id, cwd)).toEqual(left);
    expect(ranIn(cwd)).toBe(ran);

    const { peer } = await start(home);
    const loaded = await loadIn(peer, id, cwd);
    expect(loaded._meta?.[RESTORE]).toBeUndefined();
    const statuses = cards(peer, id).filter((card) => card.startsWith('tool_call_update'));
    expect(statuses.toSorted()).toEqual(
      [
        ...left.map(() => 'tool_call_update completed'),
        ...Array(2 - left.length).fill('tool_call_update failed'),
      ].toSorted(),
    );
    const restore = { sessionId: id, prompt: [], _meta: { [RESTORE]: true } };
    expect(await peer.request('session/prompt', restore)).toEqual({ stopReason: 'end_turn' });
    expect(peer.unanswered).toBe(0);
    expect(await peer.request('qwen/control/session/continue', { sessionId: id })).toEqual({
      accepted: true,
      interruption: 'interrupted_turn',
    });
    await peer.prompt(id, 'and now?');
    const records = home.records(id, cwd);
    expect(resultsOnDisk(home, id, cwd).toSorted()).toEqual([...repaired].toSorted());
    expect(new Set(responseIds(records)).size).toBe(2);
    expect(ranIn(cwd)).toBe(ran);
  });
}

test('[TL-1, BT-10] what ran, and what a person said beside it, stays when nobody decides the rest', async () => {
  const cwd = tempFolder();
  const { home, peer } = await start();
  const id = await yolo(peer, cwd);
  const { turn, asked } = await peer.askIn(id, '[[read]]');
  // The result was on disk before the question was out.
  expect(resultsOnDisk(home, id, cwd)).toEqual(['error/error/execution_failed error']);
  await peer.request('session/set_mode', { sessionId: id, modeId: 'default' });
  asked.answer(submit({ 0: 'Red' }));
  (await peer.question()).answer(unattended('session_closed'));
  expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  const kept = ['error/error/execution_failed error', RAN];
  expect(resultsOnDisk(home, id, cwd)).toEqual(kept);
  await peer.prompt(id, 'and now?');
  expect(resultsOnDisk(home, id, cwd)).toEqual([...kept, LOST]);
  expect(ranIn(cwd)).toBe('');
});

test('[TL-1] a mixed batch goes on to the model with all its results, in call order', async () => {
  const cwd = tempFolder();
  const { home, peer } = await start();
  const id = await yolo(peer, cwd);
  const { turn, asked } = await peer.askIn(id, '[[command first]]');
  // A load meanwhile shows the command's result once, and leaves the question open.
  const from = peer.updates(id).length;
  await loadIn(peer, id, cwd);
  expect(cards(peer, id, from)).toEqual([
    'tool_call in_progress',
    'tool_call in_progress',
    'tool_call_update completed',
  ]);
  asked.answer(submit({ 0: 'Red' }));
  await turn;
  expect(resultsOnDisk(home, id, cwd)).toEqual([RAN, RAN]);
  expect(saidIn(peer, id)).toContain('RESPONSE: exit 0');
  expect(saidIn(peer, id)).toContain('Red');
  const calls = home.records(id, cwd).filter(({ type }) => type === 'tool_result');
  expect(calls.map(({ message }) => message.parts[0].functionResponse.name)).toEqual([
    'run_shell_command',
    'ask_user_question',
  ]);
});

test('[TL-1, BT-2, ACP-11, K012] a load while a tool runs shows what it has said, and the turn goes on', async () => {
  const cwd = tempFolder();
  const { peer } = await start();
  const { id, turn } = await running(peer, cwd, 'watch, command');
  const said = [{ type: 'content', content: { type: 'text', text: 'half of it' } }];
  const from = peer.updates(id).length;
  await loadIn(peer, id, cwd);
  expect(cards(peer, id, from)).toEqual([
    'tool_call in_progress',
    'tool_call in_progress',
    'tool_call_update in_progress',
  ]);
  expect(peer.updates(id).at(-1)).toMatchObject({ content: said });
  const bulk = { 'qwen.session.loadReplayMode': 'bulk' };
  const loaded = await peer.request('session/load', { sessionId: id, cwd, mcpServers: [], _meta: bulk });
  expect(loaded._meta['qwen.session.loadReplay'].updates.at(-1)).toMatchObject({ content: said });
  await peer.notify('session/cancel', { sessionId: id });
  await turn;
  expect(cards(peer, id).slice(-2)).toEqual(['tool_call_update failed', 'tool_call_update failed']);
});

const STOPS: Readonly<Record<string, (peer: Peer, sessionId: string) => Promise<unknown>>> = {
  'session/cancel': (peer, sessionId) => peer.notify('session/cancel', { sessionId }),
  'session/close': (peer, sessionId) => peer.request('session/close', { sessionId }),
  EOF: (peer) => peer.eof(),
  SIGTERM: (peer) => peer.kill('SIGTERM'),
};

/** Starts a tool that runs until it is stopped; resolves when it runs. */
async function running(peer: Peer, cwd: string, name: string) {
  const id = await yolo(peer, cwd);
  const turn = peer.prompt(id, `[[${name}]]`).catch(() => undefined);
  const shown = name === 'deaf' ? /"status":"in_progress"/ : /half of it/;
  await peer.until(() => shown.test(JSON.stringify(peer.updates(id))));
  return { id, turn };
}

test('[TL-1, ACP-7, ACP-9] a stop while a tool runs records what it had done, and what was not begun stays open or is closed', async () => {
  for (const [how, stop] of Object.entries(STOPS)) {
    const cwd = tempFolder();
    const { home, peer } = await start();
    const { id, turn } = await running(peer, cwd, 'wait');
    const from = performance.now();
    await stop(peer, id);
    const end = await turn;
    expect(performance.now() - from, how).toBeLessThan(2_000);
    if (how.startsWith('session/')) expect(end, how).toEqual({ stopReason: 'cancelled' });
    const results = home.records(id, cwd).filter(({ type }) => type === 'tool_result');
    const [{ message }] = results;
    expect(message.parts[0].functionResponse.response.error, how).toContain('half of it');
    const closed = how === 'session/cancel' ? ['cancelled/not_started error'] : [];
    expect(resultsOnDisk(home, id, cwd), how).toEqual(['cancelled/error error', ...closed]);
    if (how === 'session/cancel') expect(kinds(home.records(id, cwd)).at(-1)).toBe('system/turn_result');
    expect(ranIn(cwd), how).toBe('');
    if (how !== 'SIGTERM') continue;
    const { peer: next } = await start(home);
    await loadIn(next, id, cwd);
    expect(await next.request('qwen/control/session/continue', { sessionId: id })).toMatchObject({
      interruption: 'interrupted_turn',
    });
  }
});

test('[TL-1, TR-5, K021, K055] what a command did is on disk before the next call runs, whatever that one does', async () => {
  for (const name of ['command, watch', 'command, wait']) {
    const cwd = tempFolder();
    const { home, peer } = await start();
    const { id } = await running(peer, cwd, name);
    await peer.kill();
    expect(resultsOnDisk(home, id, cwd), name).toEqual([RAN]);
    const { peer: next } = await start(home);
    await loadIn(next, id, cwd);
    await next.prompt(id, 'and now?');
    // It ran, how far is not known: nothing says that it did not.
    expect(resultsOnDisk(home, id, cwd), name).toEqual([RAN, LOST]);
    expect(ranIn(cwd), name).toBe('ran\n');
  }
});

test('[TL-1, ACP-9] what calls had found that change nothing is kept when the process is told to end', async () => {
  const cwd = tempFolder();
  const { home, peer } = await start();
  const { id } = await running(peer, cwd, 'reads');
  expect(resultsOnDisk(home, id, cwd)).toEqual([]);
  await peer.eof();
  expect(resultsOnDisk(home, id, cwd)).toEqual(['error/error/execution_failed error', 'cancelled/error error']);
});

test('[TL-1, ACP-7, ACP-9] a tool that does not stop is left behind', async () => {
  const cwd = tempFolder();
  const { home, peer } = await start();
  const { id, turn } = await running(peer, cwd, 'deaf');
  const from = performance.now();
  await peer.notify('session/cancel', { sessionId: id });
  expect(await turn).toEqual({ stopReason: 'cancelled' });
  expect(cards(peer, id).at(-1)).toBe('tool_call_update failed');
  const second = await running(peer, cwd, 'deaf');
  expect(await peer.eof()).toMatchObject({ code: 0 });
  expect(performance.now() - from).toBeLessThan(4_000);
  for (const session of [id, second.id]) {
    expect(resultsOnDisk(home, session, cwd)).toEqual(['cancelled/error error']);
  }
});

test('[TL-1, ACP-4, MD-4] what a tool refuses, breaks on or fails at reaches the model without a stack', async () => {
  const { home, peer } = await start();
  const cwd = tempFolder();
  const id = await yolo(peer, cwd);
  await peer.prompt(id, '[[odd]]');
  expect(resultsOnDisk(home, id, cwd)).toEqual([
    'error/not_started/tool_not_registered error',
    'error/not_started/execution_failed error',
    'error/error/execution_failed error',
    'error/error/shell_execute_error error',
    'error/error/execution_failed error',
    RAN,
    'error/not_started/invalid_tool_params error',
  ]);
  const said = saidIn(peer, id);
  expect(said).toContain('cannot prepare');
  expect(said).not.toContain('secret.ts');
  expect(JSON.stringify(peer.wire)).not.toContain('secret.ts');
  expect(peer.stderr).toContain('secret.ts');
  const events = home.records(id, cwd).flatMap(({ systemPayload }) => systemPayload?.uiEvent ?? []);
  const calls = events.filter((event) => event['event.name'] === 'qwen-code.tool_call');
  expect(
    calls.map(({ status, execution_status, tool_type }) => [status, execution_status, tool_type].join('/')),
  ).toEqual([
    'error/not_started/native',
    'error/not_started/native',
    'error/error/native',
    'error/error/native',
    'error/error/native',
    'success/success/mcp',
    'error/not_started/native',
  ]);
});

test('[TL-1] a plan is shown live as a load shows it', async () => {
  const cwd = tempFolder();
  const { peer } = await start();
  const id = await yolo(peer, cwd);
  await peer.prompt(id, '[[plan]]');
  const entries = [{ content: 'ask', priority: 'medium', status: 'in_progress', _meta: { qwenTodo: { id: '1' } } }];
  const shown = () => peer.updates(id).filter(({ sessionUpdate }) => /plan|tool_call/.test(sessionUpdate));
  expect(shown()).toEqual([{ sessionUpdate: 'plan', entries }]);
  await loadIn(peer, id, cwd);
  expect(shown()).toMatchObject([{ entries }, { entries }]);
});

test('[TL-1, TL-2] a session works in the folders that its client gave it last', async () => {
  const [cwd, extra, other] = [tempFolder(), tempFolder(), tempFolder()];
  const { home, peer } = await start();
  const given = { cwd, mcpServers: [], additionalDirectories: [extra] };
  const { sessionId } = await peer.request('session/new', given);
  await peer.prompt(sessionId, '[[roots]]');
  await peer.request('session/load', { ...given, sessionId, additionalDirectories: [other] });
  await peer.prompt(sessionId, '[[roots]]');
  expect(saidIn(peer, sessionId)).toContain(`RESPONSE: ${JSON.stringify([[extra], cwd])}`);
  expect(saidIn(peer, sessionId)).toContain(`RESPONSE: ${JSON.stringify([[other], cwd])}`);
  // A load meanwhile does not move a running turn.
  const { asked, turn } = await peer.askIn(sessionId, '[[ask, roots]]');
  await peer.request('session/load', { ...given, sessionId });
  asked.answer(submit({ 0: 'Red' }));
  await turn;
  const responses = readFileSync(home.file(sessionId, cwd), 'utf8').split('"functionResponse"');
  const folders = responses.flatMap((text) => /"name":"roots","response":\{"output":"(.*?)"\}/.exec(text)?.[1] ?? []);
  expect(folders.slice(-2).map((text) => JSON.parse(JSON.parse(`"${text}"`)))).toEqual(Array(2).fill([[other], cwd]));
  const wrong = { ...given, additionalDirectories: ['here'] };
  await expect(peer.request('session/new', wrong)).rejects.toMatchObject({ code: -32602 });
  const server = { name: 'x', command: 'node', args: [], env: 'none' };
  await expect(peer.request('session/new', { cwd, mcpServers: [server] })).rejects.toMatchObject({ code: -32602 });
});

test('[TL-2, ACP-9] tools are opened by a prompt, replaced by a load that brings other servers, and closed with their session', async () => {
  const cwd = tempFolder();
  const log = join(cwd, 'servers.txt');
  const lines = () => (existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n') : []);
  const server = (name: string) => ({ name, command: 'node', args: [log], env: [] });
  const { peer } = await start();
  const remote = { type: 'http', name: 'far', url: 'http://127.0.0.1:9/', headers: [] };
  const given = { cwd, mcpServers: [server('a'), remote] };
  const { sessionId } = await peer.request('session/new', given);
  const load = (name: string) => peer.request('session/load', { ...given, sessionId, mcpServers: [server(name)] });
  expect(lines()).toEqual([]);
  await peer.prompt(sessionId, 'hello');
  await peer.prompt(sessionId, 'hello');
  await peer.request('session/load', { ...given, sessionId });
  expect(lines()).toEqual(['open a']);
  await load('b');
  expect(lines()).toEqual(['open a', 'close a']);
  // A turn keeps what it began with until it ends.
  await peer.request('session/set_mode', { sessionId, modeId: 'yolo' });
  const { turn, asked } = await peer.askIn(sessionId, '[[question first]]');
  await load('deaf');
  expect(lines().slice(2)).toEqual(['open b']);
  asked.answer(submit({ 0: 'Red' }));
  await turn;
  expect(ranIn(cwd)).toBe('ran\n');
  expect(lines().slice(2)).toEqual(['open b', 'close b']);
  // A server that does not end is left behind.
  await peer.prompt(sessionId, 'hello');
  const from = performance.now();
  await peer.request('session/close', { sessionId });
  expect(performance.now() - from).toBeLessThan(2_000);
  expect(lines().slice(4)).toEqual(['open deaf', 'close deaf']);

  await load('broken');
  expect(await peer.prompt(sessionId, 'hello')).toMatchObject({ stopReason: 'end_turn' });
  expect(peer.stderr).toContain('no server of that kind');
  await load('slow');
  const slow = peer.prompt(sessionId, 'hello');
  await peer.until(() => peer.updates(sessionId).length > 0);
  await peer.roundTrip();
  await peer.notify('session/cancel', { sessionId });
  expect(await slow).toEqual({ stopReason: 'cancelled' });
  await load('last');
  await peer.prompt(sessionId, 'hello');
  expect(await peer.eof()).toMatchObject({ code: 0 });
  expect(lines().slice(-2)).toEqual(['open last', 'close last']);
});

test('[TL-1] no bound cuts a character in half, on the wire or on disk', async () => {
  const cwd = tempFolder();
  const { home, peer } = await start();
  const id = await yolo(peer, cwd);
  await peer.prompt(id, '[[long]]');
  // JSON escapes what has no other half, and nothing else here.
  const wire = JSON.stringify(peer.updates(id));
  expect(wire).toContain('😀😀');
  expect(wire).not.toMatch(/\\ud[89a-f]/);
  expect(JSON.stringify(home.records(id, cwd))).not.toMatch(/\\ud[89a-f]/);
});
