import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { gitBranch } from '../../src/session/git.ts';
import { makeFifo } from '../support/fifo.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'git-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;
const SHA = '0123456789abcdef0123456789abcdef01234567';

test.each<[string, Files, string, string | undefined]>([
  ['a repository’s branch', { 'r/.git/HEAD': 'ref: refs/heads/main\n' }, 'r', 'main'],
  ['a branch with slashes', { 'r/.git/HEAD': 'ref: refs/heads/fix/a b\r\n' }, 'r', 'fix/a b'],
  ['the branch from a folder below', { 'r/.git/HEAD': 'ref: refs/heads/main\n', 'r/a/b/x': '' }, 'r/a/b', 'main'],
  ['the branch from a folder that is gone', { 'r/.git/HEAD': 'ref: refs/heads/main\n' }, 'r/gone/gone', 'main'],
  [
    'the innermost repository’s branch',
    { 'r/.git/HEAD': 'ref: refs/heads/outer\n', 'r/s/.git/HEAD': 'ref: refs/heads/inner\n' },
    'r/s',
    'inner',
  ],
  [
    'a worktree’s own branch',
    {
      'r/.git/HEAD': 'ref: refs/heads/main\n',
      'r/.git/worktrees/w/HEAD': 'ref: refs/heads/side\n',
      'w/.git': 'gitdir: ../r/.git/worktrees/w\n',
    },
    'w',
    'side',
  ],
  ['HEAD where no branch is checked out', { 'r/.git/HEAD': `${SHA}\n` }, 'r', 'HEAD'],
  ['nothing outside a repository', { 'r/x': '' }, 'r', undefined],
  ['nothing for a pointer to nowhere', { 'w/.git': 'gitdir: ../gone\n' }, 'w', undefined],
  ['nothing for junk', { 'r/.git/HEAD': '\0\0', 'r/a/.git': 'junk' }, 'r/a', undefined],
])('[TR-1] %s', (_, files, cwd, branch) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  expect(gitBranch(join(folder, cwd))).toBe(branch);
});

test('[TR-1] a FIFO in a repository’s place holds nobody up', () => {
  makeFifo(join(folder, '.git'));
  expect(gitBranch(folder)).toBe(undefined);
});
