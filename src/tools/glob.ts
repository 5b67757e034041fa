import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import picomatch from 'picomatch';
import type { Tool, ToolContext, ToolOutput } from '../session/ports.ts';
import { optionalText, refuseArgument, textArgument } from './arguments.ts';
import { Deadline } from './deadline.ts';
import { Ignores } from './ignores.ts';
import { NamePattern } from './name-pattern.ts';
import { searchStarts, slashed } from './search-folders.ts';
import { filesBelow } from './walk.ts';
import { placeIn } from './workspace.ts';

const MAX_SHOWN = 200;
/** More are not told apart by their age. */
const MAX_FOUND = 20_000;
const BATCH = 500;
const DEADLINE_MS = 20_000;

export const GLOB: Tool = {
  declaration: {
    name: 'glob',
    description:
      `Find files by a name pattern such as "src/**/*.ts", the newest first, at most ${MAX_SHOWN}. What git ignores is left ` +
      'out and links are not followed.',
    parametersJsonSchema: {
      type: 'object',
      properties: {
        pattern: { type: 'string', description: 'The pattern; without "/" it finds the name at any depth.' },
        path: { type: 'string', description: 'The folder to look in; the workspace when left out.' },
      },
      required: ['pattern'],
    },
  },
  effect: 'read',
  async prepare(args, context) {
    const search = searchOf(textArgument(args, 'pattern'), optionalText(args, 'path'));
    await targetsOf(search, context);
    return { run: () => find(search, context) };
  },
};

interface Search {
  readonly path: string | undefined;
  /** The part of the pattern without wildcards: a path like any other, and confined like one. */
  readonly base: string;
  /** Undefined when the pattern is a path. */
  readonly names: NamePattern | undefined;
}

function searchOf(pattern: string, path: string | undefined): Search {
  const { base, glob, negated } = picomatch.scan(pattern);
  const rest = negated ? pattern : glob;
  if (rest.split('/').includes('..')) refuseArgument('A pattern must not have ".." behind a wildcard.');
  return {
    path,
    base: negated ? '' : base.replace(/\\(.)/g, '$1'),
    names: rest === '' ? undefined : new NamePattern(rest, { anyDepth: false }),
  };
}

/** Throws `ToolFault` for what is not in the workspace. */
async function targetsOf({ path, base }: Search, context: ToolContext): Promise<readonly string[]> {
  if (base === '') return (await searchStarts(context, path)).map((start) => start.path);
  // A base that says of itself where it is.
  if (resolve(base) === base || base.startsWith('~')) return [(await placeIn(context, base)).path];
  const targets: string[] = [];
  for (const start of await searchStarts(context, path)) {
    targets.push((await placeIn(context, resolve(start.path, base))).path);
  }
  return targets;
}

interface Found {
  readonly path: string;
  readonly modified: number;
}

async function find(search: Search, context: ToolContext): Promise<ToolOutput> {
  const deadline = new Deadline(DEADLINE_MS, context.signal);
  const found: Found[] = [];
  let complete = true;
  try {
    for (const target of await targetsOf(search, context)) {
      complete = (await deadline.within((signal) => findIn(target, search.names, found, signal))) && complete;
    }
  } finally {
    deadline.end();
  }
  found.sort((a, b) => b.modified - a.modified || (a.path < b.path ? -1 : 1));
  const count = `${complete ? '' : 'at least '}${found.length} ${found.length === 1 ? 'file' : 'files'}`;
  if (found.length === 0) {
    const text = complete ? 'No file matches.' : 'No file was found in time. Search a smaller folder.';
    return { text, display: text };
  }
  const shown = found.slice(0, MAX_SHOWN).map(({ path }) => path);
  const left = found.length > shown.length ? `, the newest ${shown.length} are shown` : '';
  return { text: [`Found ${count}${left}.`, ...shown].join('\n'), display: `Found ${count}` };
}

/** False when there are more than it takes. */
async function findIn(
  target: string,
  names: NamePattern | undefined,
  found: Found[],
  signal: AbortSignal,
): Promise<boolean> {
  const stats = await stat(target).catch(() => undefined);
  if (stats === undefined) return true;
  if (names === undefined) {
    if (stats.isFile()) found.push({ path: target, modified: stats.mtimeMs });
    return true;
  }
  const take = async (files: readonly string[]) => {
    const paths = files.map((file) => slashed(target, file));
    for (const index of await names.find(paths, signal)) {
      const path = files[index] as string;
      const modified = await stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => undefined,
      );
      // It may be gone by now.
      if (modified !== undefined) found.push({ path, modified });
    }
  };
  let batch: string[] = [];
  const { ignores } = await Ignores.around(target, signal);
  for await (const file of filesBelow(target, ignores, signal)) {
    batch.push(file);
    if (batch.length < BATCH) continue;
    await take(batch);
    batch = [];
    if (found.length >= MAX_FOUND) return false;
  }
  await take(batch);
  return true;
}
