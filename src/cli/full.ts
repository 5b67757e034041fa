import yargs from 'yargs';
import { type ConformanceLine, parseConformance } from './conformance.ts';
import { EXPLAIN_OPTIONS, EXPLAIN_SESSION, type ExplainArguments, explainArguments } from './explain-options.ts';
import { type ChildOptions, childOptions, OPTIONS, PARSER_CONFIGURATION, unknownNames, valueFault } from './options.ts';
import {
  joinRepeats,
  SERVE_OPTIONS,
  type ServeArguments,
  serveArguments,
  serveFault,
  unknownServeNames,
} from './serve-options.ts';

/** What a command line asks for. Texts end without a newline. */
export type CommandLine =
  | { readonly kind: 'child'; readonly options: ChildOptions }
  | { readonly kind: 'serve'; readonly options: ServeArguments }
  | { readonly kind: 'explain'; readonly options: ExplainArguments }
  | Extract<ConformanceLine, { kind: 'conformance' }>
  /** Help or the version, for stdout; `note` is a line for stderr before it. */
  | { readonly kind: 'text'; readonly text: string; readonly note?: string }
  /** The exit code is 1 unless given. */
  | { readonly kind: 'fault'; readonly text: string; readonly exitCode?: number };

/** Judges any command line with full yargs. Prints nothing and never exits. */
export async function parseCommandLine(argv: readonly string[], version: string): Promise<CommandLine> {
  if (argv[0] === 'conformance') {
    const line = await parseConformance(argv.slice(1));
    return line.kind === 'fault' ? { ...line, exitCode: 2 } : line;
  }
  const parsed = await runYargs(argv, version);
  if (parsed.error !== undefined) return { kind: 'fault', text: parsed.output || parsed.error };
  if (parsed.output !== '') return { kind: 'text', text: parsed.output };
  const values = parsed.argv;
  if (values['_']?.[0] === 'serve') return { kind: 'serve', options: serveArguments(values) };
  if (values['_']?.[0] === 'explain') return { kind: 'explain', options: explainArguments(values) };
  if (values['acp'] === true) return { kind: 'child', options: childOptions(values) };
  const help = (await runYargs(['--help'], version)).output;
  if (values['restore-ask-user-question'] === true) {
    return { kind: 'text', text: help, note: '--restore-ask-user-question has no effect without --acp or serve.' };
  }
  return { kind: 'text', text: help };
}

interface Parsed {
  readonly argv: { readonly [key: string]: unknown; readonly _?: readonly (string | number)[] };
  readonly output: string;
  readonly error?: string;
}

async function runYargs(argv: readonly string[], version: string): Promise<Parsed> {
  let output = '';
  let error: string | undefined;
  const program = yargs()
    .scriptName('qwen-acp')
    // Without it the texts would depend on LANG, half of them translated.
    .locale('en')
    .parserConfiguration(PARSER_CONFIGURATION)
    .usage(
      [
        '$0 --acp [options]',
        '$0 serve [options]',
        '$0 explain <session>',
        '$0 conformance [options] -- <agent command...>',
        '',
        'A coding agent whose questions survive a restart.',
      ].join('\n'),
    )
    .command('serve', 'Run the HTTP daemon over the agent', (serve) => serve.options(SERVE_OPTIONS))
    .command('explain <session>', 'Say whether a saved session can be asked again, and why', (explain) =>
      explain.positional('session', EXPLAIN_SESSION).options(EXPLAIN_OPTIONS),
    )
    .command('conformance', 'Judge any ACP agent by what it says on its pipes')
    .options(OPTIONS)
    .check((values) => {
      // Strict mode lets through what comes after a `--`, and some names that every object has.
      const serving = values._[0] === 'serve';
      const explaining = values._[0] === 'explain';
      const unknown = serving ? unknownServeNames(values) : unknownNames(values);
      const known = explaining ? ['session', ...Object.keys(EXPLAIN_OPTIONS)] : [];
      const strays = [
        ...values._.slice(serving || explaining ? 1 : 0),
        ...unknown.filter((name) => isStray(name) && !known.includes(name)),
      ];
      const wrong = valueFault(values) ?? (serving ? serveFault(values) : undefined);
      const fault = strays.length > 0 ? `Unknown argument: ${strays.join(', ')}` : wrong;
      if (fault !== undefined) throw new Error(fault);
      return true;
    })
    .strict()
    .version(version)
    .help()
    .alias('help', 'h')
    .alias('version', 'v')
    .exitProcess(false);
  try {
    const values = await program.parseAsync(
      lastNumbers(argv[0] === 'serve' ? joinRepeats(argv) : argv),
      {},
      (failure: Error | undefined | null, _argv: unknown, text) => {
        output = text;
        if (failure) error = failure.message;
      },
    );
    return { argv: values, output, ...(error !== undefined && { error }) };
  } catch {
    // yargs trips over names that every object has, such as `--constructor`.
    return { argv: {}, output: '', error: `These arguments cannot be read: ${argv.join(' ')}` };
  }
}

const NUMBERS = Object.entries({ ...OPTIONS, ...SERVE_OPTIONS }).flatMap(([name, { type }]) =>
  type === 'number' ? [name, name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())] : [],
);

/** The same command line with the last of every repeated number alone: yargs adds a repeated 1 to the number before it. */
function lastNumbers(argv: readonly string[]): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const kept: string[] = [];
  const seen = new Set<string>();
  for (let index = end - 1; index >= 0; index -= 1) {
    const token = argv[index] as string;
    const name = /^--([\w-]+)/.exec(token)?.[1]?.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()) ?? '';
    const bare = !token.includes('=');
    if (!NUMBERS.includes(name) || (bare && !/^-?\d/.test(kept[0] ?? ''))) kept.unshift(token);
    else if (!seen.has(name)) kept.unshift(token);
    else if (bare) kept.shift();
    seen.add(name);
  }
  return [...kept, ...argv.slice(end)];
}

/** yargs itself adds its own name, help and the version to what it parsed. */
function isStray(name: string): boolean {
  return !['$0', 'help', 'h', 'version', 'v'].includes(name);
}
