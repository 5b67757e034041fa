import { expect, test } from 'vitest';
import { createScriptedModel } from '../../src/model/scripted.ts';
import { parseScript } from '../../src/model/script.ts';
import { SessionFault } from '../../src/session/faults.ts';
import type { ModelMenu, SessionEvent } from '../../src/session/ports.ts';
import { Sessions } from '../../src/session/sessions.ts';
import { localFiles } from '../../src/tools/local-files.ts';
import { localShell } from '../../src/tools/local-shell.ts';
import { tempFolder } from '../support/temp.ts';
import { CWD } from '../support/transcripts.ts';

const SETUP = { roots: [], mcpServers: [] };

const saying = (name: string) =>
  createScriptedModel(parseScript({ rules: [{ steps: [{ text: `I am ${name}` }] }] }), name);

test('[CLI-6, ACP-2] /model lists the choices and switches this session, and no other', async () => {
  const said: string[] = [];
  const client = {
    update: (_: unknown, event: SessionEvent) => void (event.kind === 'text' && said.push(event.text)),
    ask: () => Promise.reject(new Error('nothing is asked')),
    approve: () => Promise.reject(new Error('nothing is approved')),
    drainQueue: () => Promise.resolve([]),
  };
  const menu: ModelMenu = {
    choices: () => Promise.resolve([{ id: 'first' }, { id: 'second', description: 'the other one' }]),
    select: (_, id) =>
      id === 'second'
        ? Promise.resolve(saying('second'))
        : Promise.reject(new SessionFault('invalid_params', `There is no model "${id}".`)),
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const sessions = new Sessions({
    client,
    menu,
    model: () => Promise.resolve(saying('first')),
    tools: () =>
      Promise.resolve({ set: { tools: [], close: () => Promise.resolve() }, files: localFiles(), shell: localShell }),
    restoreAskUserQuestion: false,
    gitBranch: () => undefined,
    version: '0',
    env: { QWEN_HOME: tempFolder() },
    log,
  });
  const [one, other] = [await sessions.create(CWD, undefined, SETUP), await sessions.create(CWD, undefined, SETUP)];
  const prompt = async (session: typeof one, text: string) => {
    said.length = 0;
    await session.prompt({ kind: 'prompt', parts: [{ text }] });
    return said.join('');
  };
  expect(await prompt(one, '/model')).toMatch(/`first`[\s\S]*- `first`\n- `second`: the other one/);
  expect(await prompt(one, '/model third')).toBe('There is no model "third".');
  expect(await prompt(one, 'who?')).toBe('I am first');
  expect(await prompt(one, '/model second')).toContain('second');
  expect(await prompt(one, 'who?')).toBe('I am second');
  expect(await prompt(other, 'who?')).toBe('I am first');
});
