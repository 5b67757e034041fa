import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cards, sent } from '../support/evidence.ts';
import { type Asked, CANCELLED, DECLINE, Peer, submit, unattended } from '../support/peer.ts';
import { resultsOnDisk, saidIn } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { callScript, distWithTestTools } from '../support/tool-child.ts';

const cli = distWithTestTools();
const PATH = 'a.txt';
const ONCE = submit(undefined);
const ALWAYS = { outcome: { outcome: 'selected', optionId: 'proceed_always' } };

const EFFECTS = {
  read: [{ call: 'unsuccessful' }],
  note: [{ call: 'todo_write', args: { todos: [] } }],
  edit: [{ call: 'edit', args: { file_path: PATH, new_string: 'new' } }],
  execute: [{ call: 'run_shell_command', args: { command: 'echo hi' } }],
  // What its arguments are about makes it another effect.
  'execute that reads': [{ call: 'mcp__srv__peek' }],
};

const start = (batches: Parameters<typeof callScript>[0]) => Peer.start({ cli, script: callScript(batches) });

/** A file tool is given the path that a client would give it: an absolute one. */
function inFolder(cwd: string, batches: Parameters<typeof callScript>[0]) {
  return JSON.parse(JSON.stringify(batches).replaceAll(`"${PATH}"`, JSON.stringify(join(cwd, PATH))));
}

async function setMode(peer: Peer, sessionId: string, modeId: string) {
  await peer.request('session/set_mode', { sessionId, modeId });
}

test('[TL-1] what runs, what asks and what is refused, in each mode', async () => {
  const cwd = tempFolder({ [PATH]: 'old' });
  const peer = await start(inFolder(cwd, EFFECTS));
  peer.always((asked) => asked.answer(ONCE));
  const seen: Record<string, Record<string, string>> = {};
  for (const mode of ['plan', 'default', 'auto-edit', 'yolo']) {
    const row: Record<string, string> = {};
    for (const effect of Object.keys(EFFECTS)) {
      const id = await peer.newSession(cwd);
      await setMode(peer, id, mode);
      const from = peer.wire.length;
      expect(await peer.prompt(id, `[[${effect}]]`)).toMatchObject({ stopReason: 'end_turn' });
      expect(saidIn(peer, id)).toContain('RESPONSE');
      const [disk] = resultsOnDisk(peer.home, id, cwd);
      const asked = sent(peer, 'session/request_permission', from).length > 0;
      row[effect] = disk?.includes('plan_mode') ? 'refused' : asked ? 'asks' : 'runs';
      expect(disk).toMatch(/plan_mode|success\/success|execution_failed/);
    }
    seen[mode] = row;
  }
  const always = { read: 'runs', note: 'runs', 'execute that reads': 'runs' };
  expect(seen).toEqual({
    plan: { ...always, edit: 'refused', execute: 'refused' },
    default: { ...always, edit: 'asks', execute: 'asks' },
    'auto-edit': { ...always, edit: 'runs', execute: 'asks' },
    yolo: { ...always, edit: 'runs', execute: 'runs' },
  });
});

test('[TL-1] a question is asked in every mode', async () => {
  const question = {
    question: 'Which?',
    header: 'Choice',
    options: ['A', 'B'].map((label) => ({ label, description: label })),
  };
  const peer = await start({ ask: [{ call: 'ask_user_question', args: { questions: [question] } }] });
  for (const mode of ['plan', 'default', 'auto-edit', 'yolo']) {
    const id = await peer.newSession();
    await setMode(peer, id, mode);
    const { turn, asked } = await peer.askIn(id, '[[ask]]');
    asked.answer(submit({ 0: 'A' }));
    expect(await turn, mode).toMatchObject({ stopReason: 'end_turn' });
    expect(resultsOnDisk(peer.home, id), mode).toEqual(['success/success output']);
  }
});

test('[TL-1, ACP-3] what a person is shown of a call that needs approval, and of its run', async () => {
  const cwd = tempFolder({ [PATH]: 'old' });
  const path = join(cwd, PATH);
  const peer = await start(inFolder(cwd, EFFECTS));
  const id = await peer.newSession(cwd);
  const { turn, asked } = await peer.askIn(id, '[[edit]]');
  const { toolCallId } = asked.params.toolCall;
  const args = { file_path: path, new_string: 'new' };
  const card = { title: `Edit: ${PATH}`, kind: 'edit', locations: [{ path, line: null }], rawInput: args };
  const meta = { toolName: 'edit', provenance: 'builtin' };
  expect(asked.params).toEqual({
    sessionId: id,
    options: [
      { optionId: 'proceed_always', name: 'Always allow all edits', kind: 'allow_always' },
      { optionId: 'proceed_once', name: 'Allow', kind: 'allow_once' },
      { optionId: 'cancel', name: 'Reject', kind: 'reject_once' },
    ],
    toolCall: {
      toolCallId,
      status: 'pending',
      ...card,
      content: [{ type: 'diff', path, oldText: 'old', newText: 'new' }],
      _meta: meta,
    },
  });
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(cards(peer, id)).toEqual(['tool_call pending']);
  asked.answer(ONCE);
  await turn;
  expect(readFileSync(path, 'utf8')).toBe('new');
  const shown = peer.updates(id).filter(({ sessionUpdate }) => /^tool_call/.test(sessionUpdate));
  const update = { sessionUpdate: 'tool_call_update', toolCallId, _meta: meta };
  const display = { fileDiff: '', fileName: PATH, originalContent: 'old', newContent: 'new' };
  expect(shown).toEqual([
    {
      ...{ sessionUpdate: 'tool_call', toolCallId, status: 'pending', title: 'Edit', kind: 'edit' },
      ...{ content: [], locations: [], rawInput: {}, _meta: { ...meta, phase: 'preparing' } },
    },
    { ...update, status: 'in_progress', ...card },
    {
      ...update,
      status: 'completed',
      content: [{ type: 'diff', path, oldText: 'old', newText: 'new' }],
      rawOutput: display,
    },
  ]);
});

const RAN = 'success/success output';
const DECLINED = 'cancelled/not_started error';
const FAILED = 'error/not_started/unhandled_exception error';
const SKIPPED = 'error/not_started/execution_denied error';

/** Two commands of one kind in a batch; what becomes of both when the first is answered so, and how often is asked. */
const REPLIES: Readonly<
  Record<string, { reply: (asked: Asked) => void; disk: readonly string[]; asked: number; goesOn: boolean }>
> = {
  once: { reply: (asked) => asked.answer(ONCE), disk: [RAN, RAN], asked: 2, goesOn: true },
  always: { reply: (asked) => asked.answer(ALWAYS), disk: [RAN, RAN], asked: 1, goesOn: true },
  rejected: { reply: (asked) => asked.answer(DECLINE), disk: [DECLINED, SKIPPED], asked: 1, goesOn: false },
  cancelled: { reply: (asked) => asked.answer(CANCELLED), disk: [DECLINED, SKIPPED], asked: 1, goesOn: false },
  error: { reply: (asked) => asked.refuse(-32603, 'broken'), disk: [FAILED, SKIPPED], asked: 1, goesOn: false },
  malformed: {
    reply: (asked) => asked.answer({ optionId: 'proceed_once' }),
    disk: [FAILED, SKIPPED],
    asked: 1,
    goesOn: false,
  },
  unoffered: {
    reply: (asked) => asked.answer({ outcome: { outcome: 'selected', optionId: 'whatever' } }),
    disk: [FAILED, SKIPPED],
    asked: 1,
    goesOn: false,
  },
  // Nobody decided: with the switch off that is written as a decline, as the reference does.
  'timed out': {
    reply: (asked) => asked.answer(unattended('timeout')),
    disk: [DECLINED, DECLINED],
    asked: 1,
    goesOn: false,
  },
};

test('[TL-1, RS-7] how a person, or a client that breaks, answers for a call', async () => {
  const cwd = tempFolder();
  const command = { call: 'run_shell_command', args: { command: 'echo hi' } };
  const peer = await start({ commands: [command, command] });
  const ends: Record<string, unknown> = {};
  for (const [name, { reply }] of Object.entries(REPLIES)) {
    const id = await peer.newSession(cwd);
    let asked = 0;
    peer.always((question) => {
      asked++;
      reply(question);
    });
    expect(await peer.prompt(id, '[[commands]]'), name).toMatchObject({ stopReason: 'end_turn' });
    ends[name] = { disk: resultsOnDisk(peer.home, id, cwd), asked, goesOn: saidIn(peer, id).includes('RESPONSE') };
    // Allowed for the whole session, and for this one alone.
    if (name === 'always') {
      await peer.prompt(id, '[[commands]]');
      expect(asked).toBe(1);
    }
    // The history stays valid: the next prompt is answered.
    expect(await peer.prompt(id, 'and now?'), name).toMatchObject({ stopReason: 'end_turn' });
    expect(saidIn(peer, id), name).toContain('PLAIN REPLY');
  }
  const expected = Object.entries(REPLIES).map(([name, { disk, asked, goesOn }]) => [name, { disk, asked, goesOn }]);
  expect(ends).toEqual(Object.fromEntries(expected));
});

test('[TL-1, BT-1] with the switch on a call that nobody decided is closed by the next prompt, and not run', async () => {
  const cwd = tempFolder();
  const script = callScript({ command: [{ call: 'run_shell_command', args: { command: 'touch ran.txt' } }] });
  const peer = await Peer.start({ cli, script, restore: true });
  const id = await peer.newSession(cwd);
  const { turn, asked } = await peer.askIn(id, '[[command]]');
  asked.answer(unattended('timeout'));
  expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  expect(resultsOnDisk(peer.home, id, cwd)).toEqual([]);
  expect(cards(peer, id)).toEqual(['tool_call pending', 'tool_call_update failed']);
  await peer.prompt(id, 'and now?');
  // How far it got is left out: of another tool it would not be known.
  expect(resultsOnDisk(peer.home, id, cwd)).toEqual(['error error']);
  expect(existsSync(join(cwd, 'ran.txt'))).toBe(false);
});

test('[TL-1] a mode that is set while a call waits counts for the next one', async () => {
  const cwd = tempFolder({ [PATH]: 'old' });
  const edit = { call: 'edit', args: { file_path: PATH, new_string: 'new' } };
  const peer = await start(inFolder(cwd, { edits: [{ call: 'run_shell_command', args: { command: 'echo' } }, edit] }));
  const id = await peer.newSession(cwd);
  const { turn, asked } = await peer.askIn(id, '[[edits]]');
  const config = { sessionId: id, configId: 'mode', value: 'auto-edit' };
  await peer.request('session/set_config_option', config);
  asked.answer(ONCE);
  await turn;
  expect(peer.unanswered).toBe(0);
  expect(readFileSync(join(cwd, PATH), 'utf8')).toBe('new');
});
