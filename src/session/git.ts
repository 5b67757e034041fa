import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Bytes; both files hold one path. */
const LONGEST_FILE = 4_096;

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

/** The start of a regular file. The repository is somebody else's: a FIFO or a huge file in it must not hold us up. */
function read(path: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!fstatSync(fd).isFile()) return undefined;
    const bytes = Buffer.alloc(LONGEST_FILE);
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0));
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
