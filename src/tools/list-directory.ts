import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ToolFault } from '../session/faults.ts';
import type { Tool, ToolContext, ToolOutput } from '../session/ports.ts';
import { optionalFlag, optionalTexts, refuseArgument, textArgument } from './arguments.ts';
import { faultOf } from './file-faults.ts';
import { Ignores } from './ignores.ts';
import { NamePattern } from './name-pattern.ts';
import { entriesOf } from './walk.ts';
import { placeIn } from './workspace.ts';

const MAX_SHOWN = 1000;
const MAX_PATTERNS = 50;

const KINDS = { file: '', folder: '[DIR] ', link: '[LINK] ', other: '[SPECIAL] ' } as const;

export const LIST_DIRECTORY: Tool = {
  declaration: {
    name: 'list_directory',
    description: `List what is in a folder, folders first, at most ${MAX_SHOWN} names. What git ignores is left out and counted.`,
    parametersJsonSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The absolute path of the folder.' },
        ignore: { type: 'array', items: { type: 'string' }, description: 'Name patterns of what to leave out.' },
        file_filtering_options: {
          type: 'object',
          properties: { respect_git_ignore: { type: 'boolean', description: 'False to list what git ignores, too.' } },
        },
      },
      required: ['path'],
    },
  },
  effect: 'read',
  async prepare(args, context) {
    const folder = textArgument(args, 'path');
    const patterns = optionalTexts(args, 'ignore').map((glob) => new NamePattern(glob, { anyDepth: true }));
    if (patterns.length > MAX_PATTERNS) refuseArgument(`"ignore" must have at most ${MAX_PATTERNS} patterns.`);
    const options = args['file_filtering_options'];
    const filter = typeof options === 'object' && options !== null ? (options as Record<string, unknown>) : {};
    const listsIgnored = filter['respect_git_ignore'] != null && !optionalFlag(filter, 'respect_git_ignore');
    await placeIn(context, folder);
    return { run: () => list(folder, { patterns, listsIgnored }, context) };
  },
};

interface Options {
  readonly patterns: readonly NamePattern[];
  readonly listsIgnored: boolean;
}

async function list(folder: string, options: Options, context: ToolContext): Promise<ToolOutput> {
  const { signal } = context;
  const { path } = await placeIn(context, folder);
  const { entries, more } = await contentOf(path, signal);
  const unwanted = new Set<number>();
  const names = entries.map(({ name }) => name);
  for (const pattern of options.patterns) for (const index of await pattern.find(names, signal)) unwanted.add(index);
  const ignores = await (await Ignores.around(path, signal)).ignores.inside(path, signal);
  let ignored = 0;
  const listed = entries.filter(({ name, kind }, index) => {
    if (unwanted.has(index)) return false;
    const isIgnored = !options.listsIgnored && ignores.ignores(join(path, name), kind === 'folder');
    if (isIgnored) ignored += 1;
    return !isIgnored;
  });
  listed.sort((a, b) => Number(b.kind === 'folder') - Number(a.kind === 'folder'));
  const shown = listed.slice(0, MAX_SHOWN).map(({ name, kind }) => `${KINDS[kind]}${oneLine(name)}`);
  const left = listed.length - shown.length;
  const notes = [
    ...(left === 0 && !more ? [] : [`${left}${more ? ' and more' : ''} not shown`]),
    ...(ignored === 0 ? [] : [`${ignored} ignored by git`]),
  ];
  const note = notes.length === 0 ? '' : ` (${notes.join(', ')})`;
  const items = `${listed.length} ${listed.length === 1 ? 'item' : 'items'}`;
  return { text: [`${path} has ${items}${note}.`, ...shown].join('\n'), display: `Listed ${items}${note}` };
}

async function contentOf(path: string, signal: AbortSignal) {
  try {
    if (!(await stat(path)).isDirectory()) throw new ToolFault('path_is_not_a_directory', `${path} is not a folder.`);
    return await entriesOf(path, signal);
  } catch (error) {
    throw faultOf(error, path);
  }
}

/** A name may have a line end in it, and must not pass for two. */
const oneLine = (name: string): string => (/[\r\n]/.test(name) ? JSON.stringify(name) : name);
