import type { ApprovalScope } from '../session/ports.ts';

/**
 * Characters with which a shell can be made to do more than run one program with these words, in any of the shells that
 * commands run in, and spaces that are none to a shell. `*`, `?` and brackets only name more files.
 */
const METACHARACTERS = /[;&|<>$`\\!(){}#^%\0]|[^\S \t]/;

/** Programs that only show things; which ones they are shown is the free part of the scope. */
const VIEWERS = new Set([
  'ls',
  'cat',
  'head',
  'tail',
  'wc',
  'stat',
  'file',
  'du',
  'df',
  'diff',
  'echo',
  'pwd',
  'which',
]);
/** Parts of git that start no other program through what they are given beside options. */
const GIT = new Set(['status', 'diff', 'log', 'show', 'blame', 'add', 'commit', 'branch']);

/**
 * What "always allow" may cover of a command: its root words with its options for the programs above, so that only the
 * names of files may differ, and for any other program this very command. Undefined where the command has
 * metacharacters: what follows `;` or stands in `$()` has nothing to do with the root words. `folder` is where it
 * runs, as the same words do something else elsewhere; undefined for the workspace's own folder. Pure.
 */
export function commandScope(command: string, folder?: string): ApprovalScope | undefined {
  const text = command.replace(/^[ \t\n]+|[ \t\n]+$/g, '');
  if (METACHARACTERS.test(text)) return undefined;
  const quoted = wordsOf(text);
  if (quoted === undefined) return undefined;
  const words = quoted.map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
  const roots = rootWords(words);
  const where = folder === undefined ? '' : ` in ${folder}`;
  // With its quotes: `*` and `~` are names in them, and something else without.
  if (roots === undefined)
    return { key: `shell ${JSON.stringify([folder ?? null, quoted])}`, label: `${text}${where}` };
  const options = words.slice(roots.length).filter((word) => word.startsWith('-'));
  const covered = [...roots, ...options];
  return { key: `shell ${JSON.stringify([folder ?? null, covered, '…'])}`, label: `${covered.join(' ')} …${where}` };
}

/** As they are written. Undefined for quotes that do not close, and for a variable that is set in front of the program. */
function wordsOf(text: string): string[] | undefined {
  const words: string[] = [];
  const word = /\s*((?:[^\s'"]|'[^']*'|"[^"]*")+)/y;
  while (word.lastIndex < text.length) {
    const found = word.exec(text)?.[1];
    if (found === undefined) return undefined;
    words.push(found);
  }
  return words[0] === undefined || words[0].includes('=') ? undefined : words;
}

function rootWords(words: readonly string[]): string[] | undefined {
  const [program = '', part = ''] = words;
  // A file may be named like an option.
  if (words.some((word) => /[*?[]/.test(word))) return undefined;
  // `--output FILE`, however it is shortened: the file would be the free part, and it is written.
  if (program === 'git' && words.some((word) => word.startsWith('--o'))) return undefined;
  if (VIEWERS.has(program)) return [program];
  return program === 'git' && GIT.has(part) ? [program, part] : undefined;
}
