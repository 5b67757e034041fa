import { exec } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cards } from '../support/evidence.ts';
import { Peer, type Served } from '../support/peer.ts';
import { resultsOnDisk, saidIn } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { callScript, distWithTestTools } from '../support/tool-child.ts';

const cli = distWithTestTools();
const refuse = (code: number, message: string) => Promise.reject(Object.assign(new Error(message), { code }));

/** An editor with unsaved text of one file. */
function editor(unsaved: Map<string, string>, asked: string[]): Record<string, Served> {
  return {
    'fs/read_text_file': ({ path }) => {
      asked.push(`read ${path}`);
      const content = unsaved.get(path);
      return content === undefined ? refuse(-32603, 'no buffer') : { content };
    },
    'fs/write_text_file': ({ path, content }) => {
      asked.push(`write ${path}`);
      if (path.endsWith('locked.txt')) return refuse(-32603, 'read only');
      unsaved.set(path, content);
      return {};
    },
  };
}

const FS_ROWS = [
  { fs: { readTextFile: true, writeTextFile: true }, read: 'unsaved', asked: ['read', 'read', 'write'] },
  { fs: { readTextFile: false, writeTextFile: true }, read: 'saved', asked: ['write'] },
  { fs: { readTextFile: true, writeTextFile: false }, read: 'unsaved', asked: ['read', 'read'] },
  { fs: {}, read: 'saved', asked: [] },
];

test("[TL-1] files are the client's as far as it offers them, and the disk's beyond", async () => {
  for (const { fs, read, asked } of FS_ROWS) {
    const cwd = tempFolder({ 'a.txt': 'saved' });
    const path = join(cwd, 'a.txt');
    const unsaved = new Map([[path, 'unsaved']]);
    const seen: string[] = [];
    const script = callScript({
      both: [
        { call: 'read_file', args: { file_path: path } },
        { call: 'edit', args: { file_path: path, new_string: 'edited' } },
      ],
    });
    const initialize = { clientCapabilities: { fs } };
    const peer = await Peer.start({ cli, script, initialize, serve: editor(unsaved, seen) });
    const id = await peer.newSession(cwd);
    await peer.request('session/set_mode', { sessionId: id, modeId: 'yolo' });
    await peer.prompt(id, '[[both]]');
    expect(saidIn(peer, id), JSON.stringify(fs)).toContain(`RESPONSE: ${read}`);
    expect(seen.map((line) => line.split(' ')[0])).toEqual(asked);
    expect([unsaved.get(path), readFileSync(path, 'utf8')]).toEqual(
      fs.writeTextFile ? ['edited', 'saved'] : ['unsaved', 'edited'],
    );
  }
});

test("[TL-1] a client's refusal is the tool's failure, and a file that is nowhere is not there", async () => {
  const cwd = tempFolder({ 'closed.txt': 'x' });
  const at = (name: string) => join(cwd, name);
  const script = callScript({
    all: [
      { call: 'read_file', args: { file_path: at('closed.txt') } },
      { call: 'read_file', args: { file_path: at('none.txt') } },
      { call: 'edit', args: { file_path: at('locked.txt'), new_string: 'x' } },
    ],
  });
  const initialize = { clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } } };
  const peer = await Peer.start({ cli, script, initialize, serve: editor(new Map(), []) });
  const id = await peer.newSession(cwd);
  await peer.request('session/set_mode', { sessionId: id, modeId: 'auto-edit' });
  await peer.prompt(id, '[[all]]');
  expect(resultsOnDisk(peer.home, id, cwd)).toEqual([
    'error/not_started/permission_denied error',
    'error/not_started/file_not_found error',
    'error/error/permission_denied error',
  ]);
});

/** Terminals of a client that runs what it is told, or holds it for ever. */
function terminals(seen: string[], options: { readonly hold?: boolean; readonly broken?: boolean } = {}) {
  const outputs = new Map<string, { output: string; exit: Promise<{ exitCode: number }>; end: () => void }>();
  const serve: Record<string, Served> = {
    'terminal/create': ({ command, args, cwd }) => {
      seen.push('create');
      if (options.broken) return refuse(-32603, 'no terminal for you');
      const terminalId = `terminal-${outputs.size + 1}`;
      let end = () => {};
      const terminal = { output: '', exit: new Promise<{ exitCode: number }>(() => {}), end: () => end() };
      if (options.hold) {
        terminal.output = 'half of it\n';
        terminal.exit = new Promise((resolve) => {
          end = () => resolve({ exitCode: 137 });
        });
      } else {
        terminal.exit = new Promise((resolve) => {
          exec(`${command} ${args[0]} '${args[1]}'`, { cwd }, (error, output) => {
            terminal.output = output;
            resolve({ exitCode: error?.code ?? 0 });
          });
        });
      }
      outputs.set(terminalId, terminal);
      return { terminalId };
    },
    'terminal/wait_for_exit': ({ terminalId }) => {
      seen.push('wait');
      return outputs.get(terminalId)?.exit;
    },
    'terminal/output': ({ terminalId }) => {
      seen.push('output');
      return { output: outputs.get(terminalId)?.output, truncated: false };
    },
    'terminal/kill': ({ terminalId }) => {
      seen.push('kill');
      outputs.get(terminalId)?.end();
      return {};
    },
    'terminal/release': () => {
      seen.push('release');
      return {};
    },
  };
  return serve;
}

async function withTerminal(serve: Record<string, Served>, command: string, timeout?: number) {
  const cwd = tempFolder();
  const script = callScript({ run: [{ call: 'run_shell_command', args: { command, ...(timeout && { timeout }) } }] });
  const initialize = { clientCapabilities: { terminal: true } };
  const peer = await Peer.start({ cli, script, initialize, serve });
  const id = await peer.newSession(cwd);
  await peer.request('session/set_mode', { sessionId: id, modeId: 'yolo' });
  return { cwd, peer, id, turn: peer.prompt(id, '[[run]]') };
}

test("[TL-1] a command runs in the client's terminal, which its card goes on showing", async () => {
  const seen: string[] = [];
  const { cwd, peer, id, turn } = await withTerminal(terminals(seen), 'echo hi > there.txt; echo done; exit 3');
  await turn;
  expect(seen).toEqual(['create', 'wait', 'output', 'release']);
  expect(readFileSync(join(cwd, 'there.txt'), 'utf8')).toBe('hi\n');
  expect(saidIn(peer, id)).toContain('RESPONSE: done\nexit 3');
  const contents = peer
    .updates(id)
    .flatMap((update) => (update.sessionUpdate === 'tool_call_update' ? [[update.status, update.content]] : []));
  const terminal = [{ type: 'terminal', terminalId: 'terminal-1' }];
  expect(contents).toEqual([
    ['in_progress', undefined],
    ['in_progress', terminal],
    ['completed', terminal],
  ]);
});

test("[TL-1, ACP-7] a cancel kills the client's terminal and lets go of it", async () => {
  const seen: string[] = [];
  const { cwd, peer, id, turn } = await withTerminal(terminals(seen, { hold: true }), 'sleep');
  await peer.until(() => JSON.stringify(peer.updates(id)).includes('terminal-1'));
  await peer.notify('session/cancel', { sessionId: id });
  expect(await turn).toEqual({ stopReason: 'cancelled' });
  expect(seen).toEqual(['create', 'wait', 'output', 'kill', 'release']);
  expect(resultsOnDisk(peer.home, id, cwd)).toEqual(['cancelled/error error']);
  expect(JSON.stringify(peer.home.records(id, cwd))).toContain('half of it');
  expect(cards(peer, id).at(-1)).toBe('tool_call_update failed');
});

test('[TL-1] a command whose time is over is killed; a terminal that cannot be had is a failure of the command', async () => {
  const seen: string[] = [];
  const late = await withTerminal(terminals(seen, { hold: true }), 'sleep', 50);
  await late.turn;
  expect(saidIn(late.peer, late.id)).toContain('too late');
  expect(seen).toEqual(['create', 'wait', 'kill', 'wait', 'output', 'release']);
  const broken = await withTerminal(terminals([], { broken: true }), 'echo > ran.txt');
  await broken.turn;
  expect(resultsOnDisk(broken.peer.home, broken.id, broken.cwd)).toEqual(['error/error/shell_execute_error error']);
  expect(existsSync(join(broken.cwd, 'ran.txt'))).toBe(false);
  const never = { ...terminals([]), 'terminal/create': () => new Promise(() => {}) };
  const silent = await withTerminal(never, 'echo > ran.txt', 50);
  await silent.turn;
  expect(resultsOnDisk(silent.peer.home, silent.id, silent.cwd)).toEqual(['error/error/shell_execute_error error']);
});
