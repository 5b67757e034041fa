import type { Options as YargsOptions } from 'yargs';
import yargsParser from 'yargs-parser';
import { LOG_LEVELS, type LogLevel } from '../log.ts';
import { AUTH_TYPES, type AuthType } from '../session/ports.ts';

/** The child's options, as the short start path and full yargs both give them. */
export interface ChildOptions {
  readonly restoreAskUserQuestion: boolean;
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
  'experimental-lsp': { type: 'boolean', describe: 'Accepted for compatibility; has no effect' },
  'auth-type': {
    type: 'string',
    requiresArg: true,
    choices: AUTH_TYPES,
    describe: 'Which kind of model provider to use (openai and anthropic are not in this version yet)',
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
  const parsed = yargsParser.detailed([...argv], PARSER_OPTIONS);
  if (parsed.error !== null) return undefined;
  const values: Argv = parsed.argv;
  if (values['acp'] !== true || parsed.argv._.length > 0) return undefined;
  if (unknownNames(values).length > 0) return undefined;
  if (CHOICES.some(([name, choices]) => values[name] !== undefined && !choices.includes(values[name] as string))) {
    return undefined;
  }
  return valueFault(values) === undefined ? childOptions(values) : undefined;
}

/** The names on a parsed command line that are none of the table's. */
export function unknownNames(argv: Argv): string[] {
  return Object.keys(argv).filter((name) => name !== '_' && !KNOWN.has(name));
}

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
    ...(authType !== undefined && { authType }),
    ...(typeof model === 'string' && { model }),
    ...(typeof script === 'string' && { script }),
    ...(logLevel !== undefined && { logLevel }),
    ...(typeof maxLineBytes === 'number' && { maxLineBytes }),
  };
}

const TABLE: Readonly<Record<string, YargsOptions>> = OPTIONS;
const NAMES = Object.keys(TABLE);
const namesOfType = (type: string) => NAMES.filter((name) => TABLE[name]?.type === type);
const CHOICES = NAMES.flatMap((name): [string, readonly string[]][] => {
  const choices = TABLE[name]?.choices;
  return choices === undefined ? [] : [[name, choices.map(String)]];
});
const KNOWN = new Set(
  NAMES.flatMap((name) => [name, ...(TABLE[name]?.alias ? [String(TABLE[name].alias)] : [])]).flatMap((name) => [
    name,
    name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
  ]),
);
const PARSER_OPTIONS = {
  // As yargs does, for the camel-case spellings.
  key: Object.fromEntries(NAMES.map((name) => [name, true])),
  boolean: namesOfType('boolean'),
  string: namesOfType('string'),
  number: namesOfType('number'),
  alias: Object.fromEntries(NAMES.flatMap((name) => (TABLE[name]?.alias ? [[name, [String(TABLE[name].alias)]]] : []))),
  narg: Object.fromEntries(NAMES.filter((name) => TABLE[name]?.requiresArg).map((name) => [name, 1])),
  configuration: PARSER_CONFIGURATION,
};
