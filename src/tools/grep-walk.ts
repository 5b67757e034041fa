import { dirname } from 'node:path';
import { refuseArgument } from './arguments.ts';
import { type GrepQuery, type Matches, MAX_GREP_BYTES, MAX_GREP_LINE } from './grep-matches.ts';
import { GuardedPattern } from './guarded-pattern.ts';
import { Ignores } from './ignores.ts';
import { readWhole } from './local-files.ts';
import { type Start, slashed } from './search-folders.ts';
import { filesBelow } from './walk.ts';

const BATCH = 200;

/** Searches by reading each file here. Throws `ToolFault`; on abort the signal's reason. */
export async function grepByWalking(
  { pattern, names }: GrepQuery,
  start: Start,
  matches: Matches,
  signal: AbortSignal,
): Promise<void> {
  const guarded = new GuardedPattern(expressionOf(pattern));
  const searchAll = async (files: readonly string[]) => {
    const paths = files.map((file) => slashed(start.isFolder ? start.path : dirname(start.path), file));
    const wanted = names === undefined ? [...files.keys()] : await names.find(paths, signal);
    for (const index of wanted) if (!matches.isFull) await searchFile(files[index] as string, guarded, matches, signal);
  };
  if (!start.isFolder) return searchAll([start.path]);
  const { ignores } = await Ignores.around(start.path, signal);
  let batch: string[] = [];
  for await (const file of filesBelow(start.path, ignores, signal)) {
    batch.push(file);
    if (batch.length < BATCH) continue;
    await searchAll(batch);
    batch = [];
    if (matches.isFull) return;
  }
  await searchAll(batch);
}

async function searchFile(path: string, pattern: GuardedPattern, matches: Matches, signal: AbortSignal): Promise<void> {
  const bytes = await readWhole(path, signal, MAX_GREP_BYTES).catch(() => {
    // One file that cannot be read, or is too large, does not spoil the search of the others.
    signal.throwIfAborted();
    return undefined;
  });
  const text = bytes === undefined ? undefined : textOf(bytes);
  if (text === undefined) return;
  const lines = text.split(/\r?\n/);
  // What follows the last line end is no line.
  if (lines.at(-1) === '') lines.pop();
  const numbers = [...lines.keys()].filter((index) => (lines[index] as string).length <= MAX_GREP_LINE);
  const searched = numbers.map((index) => lines[index] as string);
  for (const found of await pattern.find(searched, signal)) {
    matches.add(path, (numbers[found] as number) + 1, searched[found] as string);
  }
}

/** Undefined for what is binary. */
function textOf(bytes: Buffer): string | undefined {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}

function expressionOf(pattern: string): RegExp {
  // This program's expressions have no flags inside, and case is of no account anyway.
  const source = pattern.replace(/^\(\?i\)/, '');
  try {
    return new RegExp(source, 'iu');
  } catch {
    // The stricter form refuses a backslash in front of a character that needs none.
  }
  try {
    return new RegExp(source, 'i');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return refuseArgument(`"pattern" is no regular expression: ${error.message}`);
  }
}
