import type { Options as YargsOptions } from 'yargs';
import yargsParser from 'yargs-parser';
import { childOptions, OPTIONS, optionTable, PARSER_CONFIGURATION, valueFault } from './options.ts';

export const PERMISSION_STRATEGIES = ['first-responder', 'designated', 'consensus', 'local-only'] as const;

/** What a command line says of the daemon; what it leaves out is undefined, defaults included. */
export interface ServeArguments {
  readonly restoreAskUserQuestion: boolean;
  readonly experimentalLsp: boolean;
  readonly port?: number;
  readonly hostname?: string;
  readonly permissionStrategy?: (typeof PERMISSION_STRATEGIES)[number];
  readonly consensusQuorum?: number;
  readonly permissionResponseTimeoutMs?: number;
  readonly initializeTimeoutMs?: number;
  readonly token?: string;
  readonly requireAuth: boolean;
  readonly allowOrigins: readonly string[];
  readonly maxSessions?: number;
  readonly maxConnections?: number;
  readonly child: ReturnType<typeof childOptions>;
}

/** The options of `serve` alone; those of `OPTIONS` hold too, and go to the child where they are its own. */
export const SERVE_OPTIONS = {
  port: { type: 'number', requiresArg: true, describe: 'Port to listen on, 0 for a free one (default: 4170)' },
  hostname: {
    type: 'string',
    requiresArg: true,
    describe: 'Address to listen on; others than loopback need a token (default: 127.0.0.1)',
  },
  token: {
    type: 'string',
    requiresArg: true,
    describe: 'Bearer token that clients must show (better in QWEN_SERVER_TOKEN, where no process list has it)',
  },
  'require-auth': { type: 'boolean', describe: 'Refuse to start without a token; /health needs it, too' },
  'allow-origin': {
    type: 'string',
    requiresArg: true,
    describe: 'Origin whose web pages may call the daemon, such as http://localhost:3000; may be repeated',
  },
  'permission-strategy': {
    type: 'string',
    requiresArg: true,
    choices: PERMISSION_STRATEGIES,
    describe: 'Whose vote answers a question (default: first-responder)',
  },
  'consensus-quorum': {
    type: 'number',
    requiresArg: true,
    describe: 'Votes that agree before a question is answered, with the strategy consensus (default: more than half)',
  },
  'permission-response-timeout-ms': {
    type: 'number',
    requiresArg: true,
    describe: 'How long a question waits for a vote, in ms; 0 for ever (default: 0)',
  },
  'initialize-timeout-ms': {
    type: 'number',
    requiresArg: true,
    describe: 'How long the agent process may take to start, in ms (default: 10000)',
  },
  'max-sessions': { type: 'number', requiresArg: true, describe: 'Live sessions at most (default: 32)' },
  'max-connections': { type: 'number', requiresArg: true, describe: 'Open connections at most (default: 256)' },
  web: { type: 'boolean', hidden: true, describe: 'Accepted for compatibility; has no effect' },
} as const satisfies Record<string, YargsOptions>;

type Argv = Readonly<Record<string, unknown>>;

const TABLE = optionTable({ ...OPTIONS, ...SERVE_OPTIONS });

/**
 * The short start path of the daemon: its options when the command line is a plain `serve` one, undefined for everything
 * else, which full yargs then judges and words.
 */
export function parseServeArguments(argv: readonly string[]): ServeArguments | undefined {
  if (argv[0] !== 'serve') return undefined;
  const parsed = yargsParser.detailed(joinRepeats(argv), TABLE.parserOptions(PARSER_CONFIGURATION));
  const values: Argv = parsed.argv;
  if (parsed.error !== null || parsed.argv._.length !== 1) return undefined;
  if (TABLE.unknownNames(values).length > 0 || TABLE.hasWrongChoice(values)) return undefined;
  return (valueFault(values) ?? serveFault(values)) === undefined ? serveArguments(values) : undefined;
}

/** The names on a `serve` command line that are in neither table. */
export const unknownServeNames = (values: Argv): string[] => TABLE.unknownNames(values);

/**
 * The same command line with one `--allow-origin` that lists all: of every other option the last one wins, and both
 * parsers can do only the one or the other.
 */
export function joinRepeats(argv: readonly string[]): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  const origins: string[] = [];
  const rest: string[] = [];
  for (let index = 0; index < end; index += 1) {
    const token = argv[index] as string;
    const option = /^--(?:allow-origin|allowOrigin)(?:=(.*))?$/s.exec(token);
    const next = index + 1 < end ? argv[index + 1] : undefined;
    if (option?.[1] !== undefined) origins.push(option[1]);
    else if (option !== null && next !== undefined && !next.startsWith('-')) {
      origins.push(next);
      index += 1;
    } else rest.push(token);
  }
  return [...rest, ...(origins.length > 0 ? [`--allow-origin=${origins.join(',')}`] : []), ...argv.slice(end)];
}

const WHOLE_NUMBERS: readonly (readonly [name: string, least: number, most: number])[] = [
  ['port', 0, 65_535],
  ['consensus-quorum', 1, 1_000_000],
  // Node's timers count to 2^31 - 1.
  ['permission-response-timeout-ms', 0, 2_147_483_647],
  ['initialize-timeout-ms', 1, 2_147_483_647],
  ['max-sessions', 1, 100_000],
  ['max-connections', 1, 100_000],
];

/** What neither parser can express about the values of `serve`; undefined when all is well. */
export function serveFault(values: Argv): string | undefined {
  for (const [name, least, most] of WHOLE_NUMBERS) {
    const value = values[name];
    if (value === undefined || (Number.isInteger(value) && Number(value) >= least && Number(value) <= most)) continue;
    return `--${name} must be a whole number from ${least} to ${most}.`;
  }
  for (const name of ['hostname', 'token']) {
    if (typeof values[name] === 'string' && values[name].trim() === '') return `--${name} must not be empty.`;
  }
  const wrong = originsOf(values).find((origin) => !isOrigin(origin));
  return wrong === undefined
    ? undefined
    : `--allow-origin must be an origin such as http://localhost:3000, not ${wrong}.`;
}

/** Reads the daemon's options out of a parsed and checked command line. */
export function serveArguments(values: Argv): ServeArguments {
  const strategy = PERMISSION_STRATEGIES.find((name) => name === values['permission-strategy']);
  const quorum = numberOf(values, 'consensus-quorum');
  const { port, hostname, token } = {
    port: numberOf(values, 'port'),
    hostname: values['hostname'],
    token: values['token'],
  };
  const permissionResponseTimeoutMs = numberOf(values, 'permission-response-timeout-ms');
  const initializeTimeoutMs = numberOf(values, 'initialize-timeout-ms');
  const maxSessions = numberOf(values, 'max-sessions');
  const maxConnections = numberOf(values, 'max-connections');
  return {
    restoreAskUserQuestion: values['restore-ask-user-question'] === true,
    experimentalLsp: values['experimental-lsp'] === true,
    requireAuth: values['require-auth'] === true,
    allowOrigins: originsOf(values),
    child: childOptions(values),
    ...(port !== undefined && { port }),
    ...(typeof hostname === 'string' && { hostname }),
    ...(typeof token === 'string' && { token }),
    ...(strategy !== undefined && { permissionStrategy: strategy }),
    ...(quorum !== undefined && { consensusQuorum: quorum }),
    ...(permissionResponseTimeoutMs !== undefined && { permissionResponseTimeoutMs }),
    ...(initializeTimeoutMs !== undefined && { initializeTimeoutMs }),
    ...(maxSessions !== undefined && { maxSessions }),
    ...(maxConnections !== undefined && { maxConnections }),
  };
}

const numberOf = (values: Argv, name: string): number | undefined => {
  const value = values[name];
  return typeof value === 'number' ? value : undefined;
};

function originsOf(values: Argv): string[] {
  const given = values['allow-origin'];
  return typeof given === 'string' ? given.split(',').map((origin) => origin.trim()) : [];
}

function isOrigin(text: string): boolean {
  if (text === '*') return true;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text.toLowerCase();
}
