import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * The checked-out branch of the repository around `cwd`: its name, `HEAD` when none is checked out (as
 * `git rev-parse --abbrev-ref HEAD` prints it), undefined outside a repository. Reads two small files at most a level
 * and starts no process. Never throws.
 */
export function gitBranch(cwd: string): string | undefined {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const gitDir = gitDirOf(folder);
    if (gitDir !== undefined) {
      const branch = branchOfHead(read(join(gitDir, 'HEAD')));
      if (branch !== undefined) return branch;
    }
    if (dirname(folder) === folder) return undefined;
  }
}

/** `.git` is a folder, or in a worktree and a submodule a file that names it; a missing one shows when HEAD is read. */
function gitDirOf(folder: string): string | undefined {
  const dotGit = join(folder, '.git');
  const pointer = read(dotGit);
  if (pointer === undefined) return dotGit;
  const target = /^gitdir: (.+?)\r?\n?$/.exec(pointer)?.[1];
  return target === undefined ? undefined : resolve(folder, target);
}

function branchOfHead(head: string | undefined): string | undefined {
  if (head === undefined) return undefined;
  const branch = /^ref: refs\/heads\/(.+?)\s*$/.exec(head)?.[1];
  if (branch !== undefined) return branch;
  return /^([0-9a-f]{40,64}|ref: \S+)\s*$/.test(head) ? 'HEAD' : undefined;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
