import yargs, { type Options as YargsOptions } from 'yargs';
import type { KitOptions } from '../conformance/kit.ts';

/** What a `conformance` command line asks for. Texts end without a newline. */
export type ConformanceLine =
  | { readonly kind: 'conformance'; readonly options: KitOptions }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'fault'; readonly text: string };

const OPTIONS = {
  daemon: { type: 'string', requiresArg: true, describe: 'A running daemon to judge, by its address' },
  serve: {
    type: 'string',
    requiresArg: true,
    describe: 'The command that starts a daemon to judge; {port} is a free port, {here} this folder',
  },
  restore: { type: 'boolean', describe: 'Judge the restoring of questions too; the command must switch it on' },
  suite: { type: 'string', array: true, requiresArg: true, describe: 'Suites to run: acp, restore, daemon' },
  only: { type: 'string', requiresArg: true, describe: 'Checks to run, by id, separated by commas' },
  profile: { choices: ['core', 'all'], requiresArg: true, describe: 'core: without what is better than qwen-code' },
  strict: { type: 'boolean', describe: 'Count a warning as a failure' },
  timeout: { type: 'number', requiresArg: true, describe: 'The longest wait for one answer, in s (default: 10)' },
  think: {
    type: 'number',
    requiresArg: true,
    describe: 'How long an agent lives on before a kill -9, in ms (default: 500)',
  },
  jobs: { type: 'number', requiresArg: true, describe: 'Checks at the same time (default: the number of cores)' },
  json: { type: 'string', requiresArg: true, describe: 'A file to write the results to' },
  env: {
    type: 'string',
    array: true,
    requiresArg: true,
    describe: 'NAME=value for the agent; {{openai}}, {{gemini}} and {{anthropic}} are the addresses of the model',
  },
  home: { type: 'string', requiresArg: true, describe: 'A folder that is copied into the HOME of every agent' },
  list: { type: 'boolean', describe: 'Only say which checks there are' },
  markdown: { type: 'boolean', describe: 'With --list, as a table for a page' },
} as const satisfies Record<string, YargsOptions>;

const SUITE_IDS = ['acp', 'restore', 'daemon'];

type Values = Readonly<Record<string, unknown>>;

/** Judges the arguments after `conformance`: its own up to `--`, the agent's command behind it. */
export async function parseConformance(argv: readonly string[]): Promise<ConformanceLine> {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const command = argv.slice(end + 1);
  let output = '';
  let failure: string | undefined;
  const program = yargs()
    .scriptName('qwen-acp')
    .locale('en')
    .parserConfiguration({ 'greedy-arrays': false, 'dot-notation': false })
    .usage('$0 conformance [options] -- <agent command...>\n\nJudges an ACP agent by what passes through its pipes.')
    .options(OPTIONS)
    .check((values) => {
      // yargs checks even where only help is asked for.
      const fault = values['help'] === true ? undefined : faultOf(values, command);
      if (fault !== undefined) throw new Error(fault);
      return true;
    })
    .strict()
    .version(false)
    .help()
    .alias('help', 'h')
    .exitProcess(false);
  const values: Values = await program.parseAsync(
    argv.slice(0, end),
    {},
    (error: Error | null | undefined, _: unknown, text) => {
      output = text;
      if (error) failure = error.message;
    },
  );
  if (failure !== undefined) return { kind: 'fault', text: output || failure };
  return output !== '' ? { kind: 'text', text: output } : { kind: 'conformance', options: optionsOf(values, command) };
}

function faultOf(values: Values & { readonly _?: readonly unknown[] }, command: readonly string[]): string | undefined {
  if (values._?.length) return `Unknown argument: ${values._.join(', ')}. The agent's command comes after --.`;
  if (values['daemon'] !== undefined && values['serve'] !== undefined) return 'Give --daemon or --serve, not both.';
  const wrongEnv = listOf(values['env']).find((entry) => !/^[A-Za-z_]\w*=/.test(entry));
  if (wrongEnv !== undefined) return `--env must be NAME=value, not ${wrongEnv}.`;
  const wrongSuite = listOf(values['suite']).find((name) => !SUITE_IDS.includes(name));
  if (wrongSuite !== undefined) return `There is no suite ${wrongSuite}.`;
  for (const name of ['timeout', 'jobs']) {
    const value = values[name];
    if (value !== undefined && !(Number(value) > 0 && Number(value) <= 3600))
      return `--${name} must be a positive number.`;
  }
  const think = Number(values['think'] ?? 0);
  if (!(think >= 0 && think <= 60_000)) return '--think must be a number of milliseconds.';
  if (command.length === 0 && !['list', 'daemon', 'serve'].some((name) => values[name] !== undefined))
    return 'The command of the agent is missing: conformance [options] -- <agent command...>';
  return undefined;
}

function optionsOf(values: Values, command: readonly string[]): KitOptions {
  const text = (name: string) => (typeof values[name] === 'string' ? { [name]: values[name] } : {});
  const suites = listOf(values['suite']);
  const only = text('only')
    ['only']?.split(',')
    .map((id) => id.trim());
  const all = values['list'] === true || only !== undefined;
  const hasDaemon = values['daemon'] !== undefined || values['serve'] !== undefined;
  const wanted = {
    acp: command.length > 0 || !hasDaemon,
    restore: values['restore'] === true,
    daemon: hasDaemon,
  };
  return {
    command,
    suites: suites.length > 0 ? suites : SUITE_IDS.filter((id) => all || wanted[id as keyof typeof wanted]),
    core: values['profile'] === 'core',
    strict: values['strict'] === true,
    timeout: Number(values['timeout'] ?? 10),
    thinking: Number(values['think'] ?? 500),
    env: Object.fromEntries(
      listOf(values['env']).map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    ),
    ...text('daemon'),
    ...text('serve'),
    ...text('json'),
    ...text('home'),
    ...(only !== undefined && { only }),
    ...(values['jobs'] !== undefined && { jobs: Math.ceil(Number(values['jobs'])) }),
    ...(values['list'] === true && { list: values['markdown'] === true ? 'markdown' : 'text' }),
  };
}

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
