import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Readable } from 'node:stream';
import { type GrepQuery, type Matches, MAX_GREP_BYTES, MAX_GREP_LINE, MAX_LIMIT } from './grep-matches.ts';
import { Ignores } from './ignores.ts';
import { type Start, slashed } from './search-folders.ts';

/** In bytes, of one message: the longest line that counts, with a place for every character of it that matches. */
const MAX_MESSAGE = 8 * 1024 * 1024;

/**
 * The program's absolute path. A relative folder on the path is passed over: it would be looked for in the workspace, where
 * anybody may have put a program of that name.
 */
export function findRipgrep(path: string | undefined): string | undefined {
  const name = process.platform === 'win32' ? 'rg.exe' : 'rg';
  return (path ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const OPTIONS = [
  ...['--json', '--no-config', '--sort=path', '--ignore-case', '--crlf', '--hidden', '--glob=!.git', '--no-follow'],
  ...['--no-ignore-global', '--no-ignore-exclude', '--no-ignore-dot', '--no-require-git', '--no-messages'],
  `--max-filesize=${MAX_GREP_BYTES}`,
];

/** Searches with ripgrep. False when it cannot read the pattern. Throws the signal's reason on abort. */
export async function grepWithRipgrep(
  program: string,
  query: GrepQuery,
  { path, isFolder }: Start,
  matches: Matches,
  signal: AbortSignal,
): Promise<boolean> {
  const folder = isFolder ? path : dirname(path);
  const { named } = await Ignores.around(folder, signal);
  const parents = named ? ['--no-ignore-parent'] : [];
  const child = spawn(program, [...OPTIONS, ...parents, `--regexp=${query.pattern}`, '--', path], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
  });
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  const stop = () => void child.kill('SIGKILL');
  signal.addEventListener('abort', stop);
  try {
    return await collect(child.stdout, folder, query, matches, signal);
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
    await ended;
  }
}

/** Whether the search was begun: then its last message is a summary, or it was not read that far. */
async function collect(
  stdout: Readable,
  folder: string,
  { names }: GrepQuery,
  matches: Matches,
  signal: AbortSignal,
): Promise<boolean> {
  let lines: Line[] = [];
  for await (const message of messagesOf(stdout)) {
    signal.throwIfAborted();
    if (message.type === 'summary') return true;
    const { data } = message;
    if (message.type === 'begin') lines = [];
    else if (message.type === 'match') {
      const line = textOf(data.lines);
      if (lines.length <= MAX_LIMIT && line.length <= MAX_GREP_LINE)
        lines.push({ number: data.line_number ?? 0, line });
      // Of a binary file it tells what came before the first NUL.
    } else if (message.type === 'end' && data.binary_offset === null && lines.length > 0) {
      const path = textOf(data.path);
      if (names !== undefined && (await names.find([slashed(folder, path)], signal)).length === 0) continue;
      for (const { number, line } of lines) matches.add(path, number, line);
      if (matches.isFull) return true;
    }
  }
  signal.throwIfAborted();
  return false;
}

interface Line {
  readonly number: number;
  readonly line: string;
}

/** Text that is no UTF-8 comes as base64. */
type RipgrepText = { readonly text: string } | { readonly bytes: string };

interface Message {
  readonly type: 'begin' | 'match' | 'end' | 'summary' | 'context';
  readonly data: {
    readonly path?: RipgrepText;
    readonly lines?: RipgrepText;
    readonly line_number?: number | null;
    readonly binary_offset?: number | null;
  };
}

function textOf(text: RipgrepText | undefined): string {
  if (text === undefined) return '';
  return 'text' in text ? text.text : new TextDecoder().decode(Buffer.from(text.bytes, 'base64'));
}

/** The messages, one a line; what is over the limit is passed over without being kept. */
async function* messagesOf(stream: Readable): AsyncGenerator<Message> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const part = chunk.subarray(from, end);
      if (length + part.length <= MAX_MESSAGE) yield JSON.parse(Buffer.concat([...parts, part]).toString('utf8'));
      [parts, length, from] = [[], 0, end + 1];
    }
    length += chunk.length - from;
    if (length > MAX_MESSAGE) parts = [];
    else parts.push(chunk.subarray(from));
  }
}
