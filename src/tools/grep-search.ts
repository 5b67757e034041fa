import type { Tool, ToolContext, ToolOutput } from '../session/ports.ts';
import { optionalInteger, optionalText, refuseArgument, textArgument } from './arguments.ts';
import { Deadline } from './deadline.ts';
import { type GrepQuery, Matches, MAX_LIMIT } from './grep-matches.ts';
import { findRipgrep, grepWithRipgrep } from './grep-ripgrep.ts';
import { grepByWalking } from './grep-walk.ts';
import { NamePattern } from './name-pattern.ts';
import { searchStarts } from './search-folders.ts';

const DEFAULT_LIMIT = 250;
const MAX_PATTERN = 1000;
const DEADLINE_MS = 20_000;

/** ripgrep is looked for in the folders of `path`, a variable's value; without it the files are read here. */
export function grepSearch(path = process.env['PATH']): Tool {
  return {
    declaration: {
      name: 'grep_search',
      description:
        'Search the text of files for a regular expression, without regard to upper and lower case, line by line. What git ' +
        'ignores, binary files and files over 10 MiB are left out, and links are not followed.',
      parametersJsonSchema: {
        type: 'object',
        properties: {
          pattern: { type: 'string', description: 'The regular expression.' },
          path: { type: 'string', description: 'The file or folder to search; the workspace when left out.' },
          glob: { type: 'string', description: 'Only in files whose names match this pattern, such as "*.ts".' },
          limit: {
            type: 'integer',
            minimum: 1,
            description: `How many matching lines to give; ${DEFAULT_LIMIT} when left out.`,
          },
        },
        required: ['pattern'],
      },
    },
    effect: 'read',
    async prepare(args, context) {
      const pattern = textArgument(args, 'pattern', true);
      if (pattern === '' || pattern.length > MAX_PATTERN || /[\n\r\0]/.test(pattern)) {
        refuseArgument(`"pattern" must be one line of 1 to ${MAX_PATTERN} characters.`);
      }
      const glob = optionalText(args, 'glob');
      const limit = Math.min(optionalInteger(args, 'limit', 1, Number.MAX_SAFE_INTEGER) ?? DEFAULT_LIMIT, MAX_LIMIT);
      const query: GrepQuery = {
        pattern,
        names: glob === undefined ? undefined : new NamePattern(glob, { anyDepth: true }),
      };
      const folder = optionalText(args, 'path');
      await searchStarts(context, folder);
      return { run: () => search(query, { folder, limit, path }, context) };
    },
  };
}

interface Options {
  readonly folder: string | undefined;
  readonly limit: number;
  readonly path: string | undefined;
}

async function search(query: GrepQuery, { folder, limit, path }: Options, context: ToolContext): Promise<ToolOutput> {
  const starts = await searchStarts(context, folder);
  const ripgrep = findRipgrep(path);
  const deadline = new Deadline(DEADLINE_MS, context.signal);
  const matches = new Matches(limit);
  let inTime = true;
  try {
    for (const start of starts) {
      inTime &&= await deadline.within(async (signal) => {
        const done = ripgrep !== undefined && (await grepWithRipgrep(ripgrep, query, start, matches, signal));
        // What only this program's expressions can do, such as looking behind, it does.
        if (!done) await grepByWalking(query, start, matches, signal);
        return true;
      });
    }
  } finally {
    deadline.end();
  }
  return outputOf(matches, inTime);
}

function outputOf({ lines, isFull }: Matches, inTime: boolean): ToolOutput {
  if (lines.length === 0) {
    const text = inTime
      ? 'Nothing matches.'
      : 'Nothing was found in time. Search a smaller folder, or by a file pattern.';
    return { text, display: text };
  }
  const count = `${lines.length} matching ${lines.length === 1 ? 'line' : 'lines'}`;
  const note = isFull ? ', there are more' : inTime ? '' : ', the search took too long to find all';
  return { text: [`Found ${count}${note}.`, ...lines].join('\n'), display: `Found ${count}${note}` };
}
