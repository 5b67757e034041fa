import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideRestore } from '../../src/session/eligibility.ts';
import { explain } from '../../src/session/explain.ts';
import { inspectTranscript } from '../../src/session/inspect.ts';
import { chatPath } from '../../src/session/paths.ts';
import { Sessions } from '../../src/session/sessions.ts';
import { makeFifo } from '../support/fifo.ts';
import { asks, COLOUR, call } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { CWD, SESSION, Writer } from '../support/transcripts.ts';

const WIRE = new URL('../fixtures/wire/transcripts/', import.meta.url).pathname;
const CLI = new URL('../../dist/cli.js', import.meta.url).pathname;

async function explained(bytes: string | Uint8Array) {
  const path = join(tempFolder(), 'session.jsonl');
  writeFileSync(path, bytes);
  return explain(await inspectTranscript(path));
}

const model = (...parts: object[]) => ({ message: { role: 'model', parts } });
const asked = (...parts: object[]) => new Writer().user('u', 'go').add('q', 'assistant', model(...parts));
const QUESTION = asks('c1', COLOUR);

describe('[BT-7, EL-1, EL-2, EL-4] explain says which rule decided, and which record', () => {
  test.each<[string, Writer, string | undefined, (boolean | null)[], [string, number] | undefined]>([
    ['a question', asked(QUESTION), undefined, [true, true, true, true], ['assistant', 2]],
    [
      'an answered one',
      asked(QUESTION).result('r', 'c1', 'x'),
      'no_trailing_model_turn',
      [false, null, null, null],
      ['tool_result', 3],
    ],
    ['text', asked({ text: 'hi' }), 'no_question', [true, false, null, null], ['assistant', 2]],
    [
      'a question beside a command',
      asked(QUESTION, call('s', 'run_shell_command', {})),
      'mixed_tools',
      [true, true, false, null],
      ['assistant', 2],
    ],
    [
      'a question without options',
      asked(asks('c1', { ...COLOUR, options: [] })),
      'invalid_params',
      [true, true, true, false],
      ['assistant', 2],
    ],
    [
      'a question that a compression left out',
      asked(QUESTION).system('k', 'chat_compression', { compressedHistory: [] }),
      'no_trailing_model_turn',
      [false, null, null, null],
      ['chat_compression', 3],
    ],
    [
      'a question behind a command of the person',
      asked(QUESTION)
        .user('h', '/help')
        .system('o', 'slash_command', {
          phase: 'result',
          rawCommand: '/help',
          outputHistoryItems: [{ type: 'assistant', text: 'Commands' }],
        }),
      undefined,
      [true, true, true, true],
      ['assistant', 2],
    ],
    ['nothing', new Writer(), 'no_trailing_model_turn', [false, null, null, null], undefined],
  ])('%s', async (_, writer, reason, holds, decider) => {
    const explanation = await explained(writer.text());
    expect(explanation.reason).toBe(reason);
    expect(explanation.restorable).toBe(reason === undefined);
    expect(explanation.rules.map((rule) => rule.holds)).toEqual(holds);
    const { decidedBy } = explanation;
    expect(decidedBy && [decidedBy.type, decidedBy.line]).toEqual(decider ?? null);
  });

  test('what each load opens and shows as failed, with the reason', async () => {
    const { loads, promptCloses, continue: continued } = await explained(asked(QUESTION).text());
    expect(loads.map((load) => [load.asksAgain, load.showsFailed, load.reason])).toEqual([
      [['c1'], [], undefined],
      [[], ['c1'], 'suppressed'],
      [[], ['c1'], 'switched_off'],
      [['c1'], [], undefined],
      [[], [], 'suppressed'],
      [[], [], 'switched_off'],
      [[], ['c1'], undefined],
    ]);
    expect(promptCloses).toEqual(['c1']);
    expect(continued).toEqual({
      opened: { accepted: false, interruption: 'none' },
      notOpened: { accepted: true, interruption: 'interrupted_turn' },
    });
  });

  test('the fault of a question names what is wrong', async () => {
    const { calls } = await explained(asked(asks('c1', { ...COLOUR, header: ' ' })).text());
    expect(calls).toEqual([{ id: 'c1', name: 'ask_user_question', fault: expect.stringContaining('"header"') }]);
  });

  test.each([
    ['c0.dangling', undefined],
    ['e0-two.dangling', undefined],
    ['e0-mixed.dangling', 'mixed_tools'],
    ['a1-single', 'no_question'],
    ['c6-restore-cancel-option', 'no_trailing_model_turn'],
  ])('recorded: %s', async (name, reason) => {
    const before = statSync(join(WIRE, `${name}.jsonl`));
    const explanation = explain(await inspectTranscript(join(WIRE, `${name}.jsonl`)));
    expect(explanation.reason).toBe(reason);
    expect(explanation.damage).toMatchObject({ tornLastLine: false, corruptLines: { count: 0 }, gaps: { count: 0 } });
    expect(statSync(join(WIRE, `${name}.jsonl`)).mtimeMs).toBe(before.mtimeMs);
  });
});

describe('[BT-7, TR-4] explain says what of a file is damaged, and where', () => {
  const SOUND = asked({ text: 'hi' });
  const lines = SOUND.lines();
  const linked = (uuid: string, parentUuid: string) => JSON.stringify({ ...SOUND.records[0], uuid, parentUuid });

  test.each<[string, string, object]>([
    ['a sound file', SOUND.text(), { corruptLines: { count: 0, lines: [] }, cycles: 0, noLastNewline: false }],
    [
      'a torn last line',
      `${SOUND.text()}{"uuid":"x","par`,
      { tornLastLine: true, noLastNewline: true, corruptLines: { count: 0, lines: [] } },
    ],
    ['a last record without its line feed', SOUND.text().trimEnd(), { tornLastLine: false, noLastNewline: true }],
    ['junk in the middle', `${lines[0]}\njunk\n\n${lines[1]}\n{}\n`, { corruptLines: { count: 2, lines: [2, 5] } }],
    [
      'a record whose body is cut',
      `${lines[0]}\n${lines[0]?.slice(0, -4)}\n${lines[1]}\n`,
      { corruptLines: { count: 1, lines: [2] } },
    ],
    [
      'a lost parent',
      `${lines[0]}\n${linked('b', 'lost')}\n`,
      { gaps: { count: 1, behind: [{ uuid: 'b', line: 2, type: 'user' }] } },
    ],
    ['a uuid that is used again', `${lines[0]}\n${lines[0]}\n`, { duplicateUuids: { count: 1, lines: [2] } }],
    ['a loop', `${linked('a', 'b')}\n${linked('b', 'a')}\n`, { cycles: 1 }],
    ['a record that is its own parent', `${linked('a', 'a')}\n`, { cycles: 1 }],
    ['a parent that comes later, no loop', `${linked('b', 'u')}\n${lines[0]}\n`, { cycles: 0 }],
    [
      'a record behind two on one line whose parent is missing',
      `${lines[0]}${lines[1]}\n${linked('b', 'lost')}\n`,
      { corruptLines: { count: 0 }, gaps: { count: 1, behind: [{ uuid: 'b', line: 2, type: 'user' }] } },
    ],
    ['zeros before a record', `\0\0${lines[0]}\n${lines[1]}\n`, { nulLines: 1 }],
    ['CRLF and a byte order mark', `\ufeff${lines.join('\r\n')}\r\n`, { byteOrderMark: true, crlfLines: 2 }],
  ])('%s', async (_, text, damage) => {
    expect((await explained(text)).damage).toMatchObject(damage);
  });

  test('branches that were left, compressions and rewinds are counted; results beside the chain are no branch', async () => {
    const writer = new Writer().user('u', 'go').calls('m', ['x', 'y']);
    writer.result('r1', 'x', '1', { parentUuid: 'm' }).result('r2', 'y', '2', { parentUuid: 'm' });
    writer.says('a', 'left').user('b', 'other', { parentUuid: 'r2' });
    writer.system('w', 'rewind').system('k', 'chat_compression', { compressedHistory: [] });
    const { history } = await explained(writer.text());
    expect(history).toEqual({
      abandonedBranches: 1,
      rewinds: [{ uuid: 'w', line: 7, type: 'rewind' }],
      compressions: [{ uuid: 'k', line: 8, type: 'chat_compression' }],
    });
  });

  test('what is no transcript is refused at once: a FIFO, a link, a folder, nothing', async () => {
    const folder = tempFolder({ 'real.jsonl': SOUND.text() });
    const [fifo, link] = [join(folder, 'fifo'), join(folder, 'link')];
    makeFifo(fifo);
    symlinkSync(join(folder, 'real.jsonl'), link);
    for (const path of [fifo, link, folder]) {
      await expect(inspectTranscript(path)).rejects.toMatchObject({ kind: 'invalid_params' });
    }
    await expect(inspectTranscript(join(folder, 'none'))).rejects.toMatchObject({ kind: 'unknown_session' });
  });
});

const entries = fc.array(
  fc.record({
    type: fc.constantFrom(
      'user',
      'text',
      'question',
      'bad question',
      'mixed',
      'broken',
      'result',
      'command',
      'compression',
      'end',
    ),
    branch: fc.constantFrom('last', 'last', 'last', 'e0', 'e2', 'lost'),
    tear: fc.nat(3),
  }),
  { maxLength: 8 },
);

function write(list: typeof entries extends fc.Arbitrary<infer T> ? T : never): string {
  const writer = new Writer().user('first', 'go');
  for (const [at, { type, branch }] of list.entries()) {
    const id = `e${at}`;
    const draft = branch === 'last' ? {} : { parentUuid: branch };
    const question = asks(`c${at}`, COLOUR);
    const output = { phase: 'result', rawCommand: 'hi', outputHistoryItems: [{ type: 'assistant', text: 'x' }] };
    if (type === 'user') writer.user(id, 'hi', draft);
    else if (type === 'text') writer.says(id, 'hi', draft);
    else if (type === 'question') writer.add(id, 'assistant', { ...model(question), ...draft });
    else if (type === 'bad question') writer.add(id, 'assistant', { ...model(asks(`c${at}`)), ...draft });
    else if (type === 'broken') writer.says(id, 'BROKEN', draft);
    else if (type === 'mixed') writer.add(id, 'assistant', { ...model(question, call('s', 'glob', {})), ...draft });
    else if (type === 'result') writer.result(id, `c${at - 1}`, 'done', draft);
    else if (type === 'command') writer.system(id, 'slash_command', output, draft);
    else if (type === 'end') writer.system(id, 'turn_result', { state: 'cancelled' }, draft);
    else writer.system(id, 'chat_compression', { compressedHistory: at % 2 ? [model(question).message] : [] }, draft);
  }
  // A record whose links can be read, and nothing else of it.
  const text = writer.text().replaceAll('BROKEN"}]}}', 'BROKEN');
  return text.slice(0, list.at(-1)?.tear === 1 ? -20 : undefined);
}

test('[BT-7, LS-3] what explain says of any session is what a load and a continue of it do', async () => {
  const env = { QWEN_HOME: tempFolder() };
  const path = chatPath(CWD, SESSION, env);
  mkdirSync(dirname(path), { recursive: true });
  const unused = () => Promise.reject(new Error('no turn is run'));
  const open = async (switchedOn: boolean, suppressed: boolean) => {
    const client = { update: () => undefined, ask: unused, approve: unused, drainQueue: unused };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const common = { client, model: unused, tools: unused, gitBranch: () => undefined, version: '0', env, log };
    const sessions = new Sessions({ ...common, restoreAskUserQuestion: switchedOn });
    const { session, open: ids } = await sessions.resume(SESSION, CWD, suppressed, { roots: [], mcpServers: [] });
    const closings = await session.chat.closings();
    return { ids: [...ids], continued: await session.interruption(), closings, last: session.chat.lastEntry() };
  };
  await fc.assert(
    fc.asyncProperty(entries, async (list) => {
      writeFileSync(path, write(list));
      const explanation = explain(await inspectTranscript(path));
      const [on, suppressed, off] = [await open(true, false), await open(true, true), await open(false, false)];
      const resumes = explanation.loads.filter(({ request }) => request === 'resume');
      expect(resumes.map(({ asksAgain }) => asksAgain)).toEqual([on.ids, suppressed.ids, off.ids]);
      expect(explanation.callIds).toEqual(on.ids);
      const situation = { switchedOn: true, suppressed: false, promptInFlight: false };
      const decision = decideRestore(situation, () => on.last);
      expect(explanation.reason).toBe('reason' in decision ? decision.reason : undefined);
      expect(explanation.continue).toEqual({ opened: on.continued, notOpened: off.continued });
      const closed = off.closings.map(({ message }) => message?.parts?.[0]?.functionResponse?.id);
      expect(explanation.promptCloses).toEqual(closed);
    }),
    { numRuns: 150 },
  );
});

test('[BT-7, CLI-4] the command explains an id or a file, in text or JSON; what is not there is exit code 1', async () => {
  const home = tempFolder();
  const env = { PATH: process.env['PATH'], QWEN_HOME: home };
  const place = (cwd: string) => {
    const path = chatPath(cwd, SESSION, env);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, asked(QUESTION).text());
    return path;
  };
  const run = async (...args: string[]) => {
    const done = promisify(execFile)(process.execPath, [CLI, 'explain', ...args], { env, cwd: home });
    return await done.then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
    );
  };
  const path = place(CWD);
  const [json, text] = await Promise.all([run('--json', SESSION.toUpperCase()), run(path)]);
  expect(JSON.parse(json.stdout)).toEqual(explain(await inspectTranscript(path)));
  expect(text).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('can be asked again (c1)') });
  const second = place('/srv/other');
  const [ambiguous, named, gone] = await Promise.all([run(SESSION), run(SESSION, '--cwd', CWD), run('nowhere.jsonl')]);
  expect(ambiguous).toMatchObject({ code: 1, stdout: '' });
  expect([path, second].filter((one) => !ambiguous.stderr.includes(one))).toEqual([]);
  expect(named.stdout).toBe(text.stdout);
  expect(gone).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('nowhere.jsonl') });
  expect(readFileSync(path, 'utf8')).toBe(asked(QUESTION).text());
});
