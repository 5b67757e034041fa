import type { Options as YargsOptions } from 'yargs';
import yargsParser, { type Options as YargsParserOptions } from 'yargs-parser';
import { LOG_LEVELS, type LogLevel } from '../log.ts';
import { AUTH_TYPES, type AuthType } from '../session/ports.ts';

/** The child's options, as the short start path and full yargs both give them. */
export interface ChildOptions {
  readonly restoreAskUserQuestion: boolean;
  readonly plainClient?: boolean;
  readonly authType?: AuthType;
  readonly model?: string;
  readonly script?: string;
  readonly logLevel?: LogLevel;
  readonly maxLineBytes?: number;
}

/** The one table of options. yargs takes it as it stands; the short path derives yargs-parser's form from it. */
export const OPTIONS = {
  acp: {
    type: 'boolean',
    alias: 'experimental-acp',
    describe: 'Speak the Agent Client Protocol on stdin and stdout',
  },
  'restore-ask-user-question': {
    type: 'boolean',
    describe: 'Ask an unanswered question again when its session is loaded or resumed (with --acp or serve)',
  },
  'plain-client': {
    type: 'boolean',
    describe: 'For an editor that knows ACP only: ask with one button a choice, and again after a load (with --acp)',
  },
  'experimental-lsp': { type: 'boolean', describe: 'Accepted for compatibility; has no effect' },
  'auth-type': {
    type: 'string',
    requiresArg: true,
    choices: AUTH_TYPES,
    describe: 'Which kind of model provider to use',
  },
  model: { type: 'string', alias: 'm', requiresArg: true, describe: 'Name of the model, as its provider spells it' },
  script: {
    type: 'string',
    requiresArg: true,
    describe: 'Script file of the scripted model (implies --auth-type scripted)',
  },
  'log-level': {
    type: 'string',
    requiresArg: true,
    choices: LOG_LEVELS,
    describe: 'What is logged to stderr (default: QWEN_ACP_LOG, else warn)',
  },
  'max-line-bytes': { type: 'number', requiresArg: true, hidden: true, describe: 'Longest inbound line, in bytes' },
} as const satisfies Record<string, YargsOptions>;

/** Both parsers run with it. The last of repeated options wins, and a dot in a value or a name means nothing. */
export const PARSER_CONFIGURATION = {
  'duplicate-arguments-array': false,
  'dot-notation': false,
  'parse-positional-numbers': false,
} as const;

type Argv = Readonly<Record<string, unknown>>;

/**
 * The short start path: the child's options when the command line is a plain `--acp` one, undefined for everything
 * else (no `--acp`, help, anything unknown or wrong), which full yargs then judges and words.
 */
export function parseChildArguments(argv: readonly string[]): ChildOptions | undefined {
  const parsed = yargsParser.detailed([...argv], CHILD_TABLE.parserOptions(PARSER_CONFIGURATION));
  if (parsed.error !== null) return undefined;
  const values: Argv = parsed.argv;
  if (values['acp'] !== true || parsed.argv._.length > 0) return undefined;
  if (CHILD_TABLE.unknownNames(values).length > 0 || CHILD_TABLE.hasWrongChoice(values)) return undefined;
  return valueFault(values) === undefined ? childOptions(values) : undefined;
}

/** The names on a parsed command line that are none of the table's. */
export const unknownNames = (argv: Argv): string[] => CHILD_TABLE.unknownNames(argv);

/** What neither parser can express about the values; undefined when all is well. */
export function valueFault(argv: Argv): string | undefined {
  const bytes = argv['max-line-bytes'];
  if (bytes !== undefined && !(Number.isSafeInteger(bytes) && Number(bytes) > 0)) {
    return '--max-line-bytes must be a positive whole number.';
  }
  for (const name of ['model', 'script']) {
    if (argv[name] === '') return `--${name} must not be empty.`;
  }
  const authType = argv['auth-type'];
  if (argv['script'] !== undefined && authType !== undefined && authType !== 'scripted') {
    return `--script belongs to --auth-type scripted, not to ${String(authType)}.`;
  }
  return undefined;
}

/** Reads the options out of a parsed and checked command line. */
export function childOptions(argv: Argv): ChildOptions {
  const authType = AUTH_TYPES.find((type) => type === argv['auth-type']);
  const logLevel = LOG_LEVELS.find((level) => level === argv['log-level']);
  const { model, script } = argv;
  const maxLineBytes = argv['max-line-bytes'];
  return {
    restoreAskUserQuestion: argv['restore-ask-user-question'] === true,
    ...(argv['plain-client'] === true && { plainClient: true }),
    ...(authType !== undefined && { authType }),
    ...(typeof model === 'string' && { model }),
    ...(typeof script === 'string' && { script }),
    ...(logLevel !== undefined && { logLevel }),
    ...(typeof maxLineBytes === 'number' && { maxLineBytes }),
  };
}

/** What the short paths need to know of a table of options. */
export interface OptionTable {
  unknownNames(argv: Argv): string[];
  hasWrongChoice(argv: Argv): boolean;
  /** The table in yargs-parser's form. */
  parserOptions(configuration: typeof PARSER_CONFIGURATION): YargsParserOptions;
}

export function optionTable(table: Readonly<Record<string, YargsOptions>>): OptionTable {
  const names = Object.keys(table);
  const ofType = (type: string) => names.filter((name) => table[name]?.type === type);
  const aliases = names.flatMap((name) => (table[name]?.alias ? [[name, String(table[name].alias)] as const] : []));
  const known = new Set(
    [...names, ...aliases.map(([, alias]) => alias)].flatMap((name) => [
      name,
      name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    ]),
  );
  return {
    unknownNames: (argv) => Object.keys(argv).filter((name) => name !== '_' && !known.has(name)),
    hasWrongChoice: (argv) =>
      names.some((name) => {
        const choices = table[name]?.choices?.map(String);
        return choices !== undefined && argv[name] !== undefined && !choices.includes(argv[name] as string);
      }),
    parserOptions: (configuration) => ({
      // As yargs does, for the camel-case spellings.
      key: Object.fromEntries(names.map((name) => [name, true])),
      boolean: ofType('boolean'),
      string: ofType('string'),
      number: ofType('number'),
      alias: Object.fromEntries(aliases.map(([name, alias]) => [name, [alias]])),
      narg: Object.fromEntries(names.filter((name) => table[name]?.requiresArg).map((name) => [name, 1])),
      configuration,
    }),
  };
}

const CHILD_TABLE = optionTable(OPTIONS);
