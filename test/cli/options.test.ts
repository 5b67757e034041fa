import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../src/cli/full.ts';
import { type ChildOptions, OPTIONS, parseChildArguments } from '../../src/cli/options.ts';

const PLAIN: ChildOptions = { restoreAskUserQuestion: false };
const RESTORE: ChildOptions = { restoreAskUserQuestion: true };

/** Both paths must give the same options; where the short one gives none, full yargs' kind of answer is expected. */
async function check(argv: readonly string[], expected: ChildOptions | 'text' | 'fault' | 'serve'): Promise<void> {
  const short = parseChildArguments(argv);
  const full = await parseCommandLine(argv, '1.2.3');
  if (typeof expected === 'string') {
    expect({ short, full: full.kind }).toEqual({ short: undefined, full: expected });
  } else {
    expect({ short, full }).toEqual({ short: expected, full: { kind: 'child', options: expected } });
  }
}

describe('spellings', () => {
  test.each<[string, ChildOptions | 'text' | 'fault' | 'serve']>([
    ['--acp', PLAIN],
    ['--experimental-acp', PLAIN],
    ['--experimentalAcp', PLAIN],
    ['--acp=true', PLAIN],
    ['--acp true', PLAIN],
    ['--acp --acp', PLAIN],
    ['--acp --experimental-acp', PLAIN],
    ['--no-acp --acp', PLAIN],
    ['--acp=false', 'text'],
    ['--acp false', 'text'],
    ['--acp=yes', 'text'],
    ['--no-acp', 'text'],
    ['--acp --no-acp', 'text'],
    ['--acp --no-experimental-acp', 'text'],
    ['--acp --restore-ask-user-question', RESTORE],
    ['--restore-ask-user-question --acp', RESTORE],
    ['--acp --restoreAskUserQuestion', RESTORE],
    ['--acp --restore-ask-user-question=true', RESTORE],
    ['--acp --restore-ask-user-question=false', PLAIN],
    ['--acp --restore-ask-user-question false', PLAIN],
    ['--acp --no-restore-ask-user-question', PLAIN],
    ['--acp --restore-ask-user-question --no-restore-ask-user-question', PLAIN],
    ['--acp --no-restore-ask-user-question --restore-ask-user-question', RESTORE],
    ['--acp --restore-ask-user-question --restore-ask-user-question', RESTORE],
    ['--acp --experimental-lsp --restore-ask-user-question', RESTORE],
    ['--acp --plain-client', { ...PLAIN, plainClient: true }],
    ['--plain-client --acp --restore-ask-user-question', { ...RESTORE, plainClient: true }],
    ['--acp --plainClient', { ...PLAIN, plainClient: true }],
    ['--acp --plain-client=true', { ...PLAIN, plainClient: true }],
    ['--acp --plain-client=false', PLAIN],
    ['--acp --plain-client false', PLAIN],
    ['--acp --no-plain-client', PLAIN],
    ['--acp --plain-client --no-plain-client', PLAIN],
    ['--acp --plain-client --plain-client', { ...PLAIN, plainClient: true }],
    ['--acp --plain-client --unknown', 'fault'],
    ['--plain-client', 'text'],
    ['serve --plain-client', 'serve'],
    ['--acp --no-experimental-lsp', PLAIN],
    ['--acp --auth-type gemini --model m', { ...PLAIN, authType: 'gemini', model: 'm' }],
    ['--acp --auth-type=vertex-ai -m m', { ...PLAIN, authType: 'vertex-ai', model: 'm' }],
    ['--acp -m=m', { ...PLAIN, model: 'm' }],
    ['--acp --model a --model b', { ...PLAIN, model: 'b' }],
    ['--acp --model 007', { ...PLAIN, model: '007' }],
    ['--acp --model gemini-2.5', { ...PLAIN, model: 'gemini-2.5' }],
    ['--acp --script a.b/s.json', { ...PLAIN, script: 'a.b/s.json' }],
    ['--acp --auth-type scripted --script s', { ...PLAIN, authType: 'scripted', script: 's' }],
    ['--acp --log-level debug', { ...PLAIN, logLevel: 'debug' }],
    ['--acp --max-line-bytes 4096', { ...PLAIN, maxLineBytes: 4096 }],
    ['--acp --auth-type gpt', 'fault'],
    ['--acp --auth-type', 'fault'],
    ['--acp --model', 'fault'],
    ['--acp --model --restore-ask-user-question', 'fault'],
    ['--acp --model=', 'fault'],
    ['--acp --log-level loud', 'fault'],
    ['--acp --script s --auth-type gemini', 'fault'],
    ['--acp --max-line-bytes 5 --max-line-bytes 1', { ...PLAIN, maxLineBytes: 1 }],
    ['--acp --max-line-bytes many', 'fault'],
    ['--acp --max-line-bytes 0', 'fault'],
    ['--acp --max-line-bytes 1.5', 'fault'],
    ['--acp --unknown', 'fault'],
    ['--acp --no-unknown', 'fault'],
    ['--acp --__proto__=1', 'fault'],
    ['--acp -x', 'fault'],
    ['--acp extra', 'fault'],
    ['--acp -- extra', 'fault'],
    ['--unknown', 'fault'],
    ['unknown', 'fault'],
    ['serve', 'serve'],
    ['serve --restore-ask-user-question', 'serve'],
    ['serve extra', 'fault'],
    ['serve --unknown', 'fault'],
    ['', 'text'],
    ['--acp --help', 'text'],
    ['--acp -h', 'text'],
    ['--acp --version', 'text'],
    ['--restore-ask-user-question', 'text'],
    ['--model m', 'text'],
  ])('[CLI-1, CLI-2, CLI-3] %j is read alike by the short path and by yargs', async (line, expected) => {
    await check(line === '' ? [] : line.split(' '), expected);
  });

  test('[CLI-3] whatever is on the command line, both paths agree', async () => {
    const names = [...Object.keys(OPTIONS), 'experimental-acp', 'experimentalAcp', 'authType', 'help', 'bogus'];
    const name = fc.constantFrom(...names);
    const value = fc.constantFrom('true', 'false', 'gemini', 'scripted', 'debug', 'm', '12', '-1', '', 'a.b', 'a=b');
    const token = fc.oneof(
      { weight: 4, arbitrary: name.map((each) => `--${each}`) },
      name.map((each) => `--no-${each}`),
      fc.tuple(name, value).map(([each, given]) => `--${each}=${given}`),
      value,
      fc.constantFrom('-m', '-mx', '-m=x', '-h', '--', '-', '--acp', '--acp', '--__proto__=1', '--constructor'),
      fc.string({ maxLength: 4 }),
    );
    const commandLine = fc.array(token, { maxLength: 6 }).map((tokens) => ['--acp', ...tokens]);
    let children = 0;
    await fc.assert(
      fc.asyncProperty(commandLine, async (argv) => {
        const short = parseChildArguments(argv);
        const full = await parseCommandLine(argv, '1.2.3');
        children += short === undefined ? 0 : 1;
        const helpDenied = full.kind === 'child' && argv.some((each) => /^--.*help|^-.*h/.test(each));
        // Help that is asked for and denied (`--no-help`) is left to yargs.
        if (short === undefined && helpDenied) return;
        expect(full.kind === 'child' ? full.options : undefined).toEqual(short);
      }),
      { numRuns: 100 },
    );
    expect(children).toBeGreaterThan(5);
  });
});

describe('texts', () => {
  test('[CLI-5] help names the commands and the options, but not the hidden one', async () => {
    const help = await parseCommandLine([], '1.2.3');
    expect(help).toMatchObject({ kind: 'text', text: expect.stringMatching(/qwen-acp serve/) });
    const text = 'text' in help ? help.text : '';
    for (const option of [
      '--acp',
      '--restore-ask-user-question',
      '--plain-client',
      '--auth-type',
      '--model',
      '--script',
      '--log-level',
    ]) {
      expect(text).toContain(option);
    }
    expect(text).not.toContain('--max-line-bytes');
    expect(await parseCommandLine(['--help'], '1.2.3')).toEqual(help);
  });

  test('[CLI-2] the restore switch without --acp is ignored with one line before the help', async () => {
    const { text: help } = (await parseCommandLine([], '1.2.3')) as { text: string };
    const asked = await parseCommandLine(['--restore-ask-user-question'], '1.2.3');
    expect(asked).toEqual({ kind: 'text', text: help, note: expect.stringMatching(/^[^\n]*--acp[^\n]*$/) });
  });

  test('[CLI-4] a wrong value is named with the choices', async () => {
    const fault = await parseCommandLine(['--acp', '--auth-type', 'gpt'], '1.2.3');
    expect(fault).toMatchObject({ kind: 'fault', text: expect.stringMatching(/auth-type.*"gpt".*"gemini"/) });
  });

  test('[CLI-3] an unknown argument comes with the usage', async () => {
    const fault = await parseCommandLine(['--acp', '--bogus'], '1.2.3');
    expect(fault).toMatchObject({ text: expect.stringMatching(/--acp \[options\][\s\S]*Unknown argument: bogus/) });
  });

  test('[CLI-4] --version gives the version alone', async () => {
    expect(await parseCommandLine(['--version'], '1.2.3')).toEqual({ kind: 'text', text: '1.2.3' });
  });
});
