import { mkdirSync, readFileSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Tool, ToolContext } from '../../src/session/ports.ts';
import { EDIT } from '../../src/tools/edit.ts';
import { GLOB } from '../../src/tools/glob.ts';
import { grepSearch } from '../../src/tools/grep-search.ts';
import { LIST_DIRECTORY } from '../../src/tools/list-directory.ts';
import { READ_FILE } from '../../src/tools/read-file.ts';
import { RUN_SHELL_COMMAND } from '../../src/tools/run-shell-command.ts';
import { isWithin, placeIn } from '../../src/tools/workspace.ts';
import { WRITE_FILE } from '../../src/tools/write-file.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, faultOfCall, runTool, toolContext } from '../support/tools.ts';

/** A workspace with a secret beside it, and links of every kind from one to the other. */
function trap(): { readonly outer: string; readonly context: ToolContext } {
  const outer = realpathSync(
    tempFolder({
      'ws/a.txt': 'inside',
      'ws/sub/b.txt': 'inside too',
      'out/secret.txt': 'secret',
      'ws-2/c.txt': 'secret',
    }),
  );
  const at = (path: string) => join(outer, path);
  symlinkSync(at('out/secret.txt'), at('ws/file-link'));
  symlinkSync('../out', at('ws/folder-link'));
  symlinkSync('folder-link', at('ws/link-to-link'));
  symlinkSync(at('out/not-yet.txt'), at('ws/dangling'));
  symlinkSync('circle-b', at('ws/circle-a'));
  symlinkSync('circle-a', at('ws/circle-b'));
  symlinkSync('sub/b.txt', at('ws/good-link'));
  return { outer, context: toolContext(at('ws')) };
}

/** `OUTER` is the folder that the workspace is in. */
const ESCAPES = [
  ['up', '../out/secret.txt'],
  ['up and down again', 'sub/../../out/secret.txt'],
  ['absolute', 'OUTER/out/secret.txt'],
  ['absolute by way of the workspace', 'OUTER/ws/../out/secret.txt'],
  ['a folder whose name begins like the workspace', 'OUTER/ws-2/c.txt'],
  ['the folder above', '..'],
  ['the root', '/'],
  ['a link to a file', 'file-link'],
  ['through a link to a folder', 'folder-link/secret.txt'],
  ['through two links', 'link-to-link/secret.txt'],
  ['what does not exist, through a link', 'folder-link/new/x.txt'],
  ['a link to what does not exist', 'dangling'],
  ['a NUL', 'a.txt\0'],
  ['the home folder', '~/.ssh/id_rsa'],
  ['somebody’s home folder', '~root/x'],
  ['another system’s drive', 'C:\\Windows\\system.ini'],
  ['another system’s drive with slashes', 'c:/Windows/system.ini'],
  ['another system’s network', '\\\\server\\share\\x'],
  ['a device of another system', '\\\\.\\pipe\\x'],
] as const;

const onPath = (tool: Tool, key: string, rest: Record<string, unknown> = {}) => ({
  name: tool.declaration.name,
  tool,
  args: (path: string) => ({ [key]: path, ...rest }),
});
const TOOLS = [
  onPath(READ_FILE, 'file_path'),
  onPath(EDIT, 'file_path', { old_string: '', new_string: 'x' }),
  onPath(WRITE_FILE, 'file_path', { content: 'x' }),
  onPath(LIST_DIRECTORY, 'path'),
  onPath(GLOB, 'path', { pattern: '*' }),
  onPath(grepSearch(), 'path', { pattern: 'secret' }),
  onPath(RUN_SHELL_COMMAND, 'directory', { command: 'cat secret.txt' }),
];

test('[TL-1] no tool leaves the workspace, whatever the path looks like', async () => {
  const { outer, context } = trap();
  for (const { name, tool, args } of TOOLS) {
    for (const [what, path] of ESCAPES) {
      const fault = await faultOfCall(tool, args(path.replace('OUTER', outer)), context);
      expect.soft(fault.type, `${name}: ${what}`).toBe('path_not_in_workspace');
      expect.soft(fault.message, `${name}: ${what}`).toContain(join(outer, 'ws'));
    }
  }
  expect(readFileSync(join(outer, 'out/secret.txt'), 'utf8')).toBe('secret');
  expect(await faultOfCall(WRITE_FILE, { file_path: 'dangling', content: 'x' }, context)).toBeDefined();
  expect(() => readFileSync(join(outer, 'out/not-yet.txt'))).toThrow();
});

test('[TL-1] a search pattern is confined like a path', async () => {
  const { outer, context } = trap();
  for (const pattern of ['../out/*', `${outer}/out/*`, '~/x/*', 'sub/../../out/*', 'folder-link/*']) {
    expect((await faultOfCall(GLOB, { pattern }, context)).type, pattern).toBe('path_not_in_workspace');
  }
  for (const pattern of ['*/../../out/*', '{a,..}/../out/*']) {
    expect((await faultOfCall(GLOB, { pattern }, context)).type, pattern).toBe('invalid_tool_params');
  }
  for (const pattern of ['**/secret*', '*/secret.txt', '{..,.}/out/*']) {
    expect((await runTool(GLOB, { pattern }, context)).text, pattern).toBe('No file matches.');
  }
  for (const grep of [grepSearch(), grepSearch('')]) {
    expect((await runTool(grep, { pattern: 'secret' }, context)).text).toBe('Nothing matches.');
  }
});

test('[TL-1] a path inside is taken as it was named: relative, by a good link, through a linked workspace', async () => {
  const { outer, context } = trap();
  symlinkSync('ws', join(outer, 'linked-ws'));
  const cases: [ToolContext, string][] = [
    [context, 'sub/b.txt'],
    [context, join(outer, 'ws/sub/b.txt')],
    [context, './sub/../sub//b.txt'],
    [context, 'good-link'],
    [context, 'folder-link/../sub/b.txt'],
    [toolContext(join(outer, 'linked-ws')), 'sub/b.txt'],
    [toolContext(join(outer, 'linked-ws')), join(outer, 'linked-ws/sub/b.txt')],
    [toolContext(join(outer, 'out'), { roots: [join(outer, 'ws')] }), join(outer, 'ws/sub/b.txt')],
  ];
  for (const [where, path] of cases) {
    expect.soft((await runTool(READ_FILE, { file_path: path }, where)).text, path).toBe('inside too');
  }
  expect((await faultOf(() => placeIn(context, 'circle-a'))).message).toContain('circle');
  expect((await faultOf(() => placeIn(context, `${'x'.repeat(300)}`))).type).toBe('invalid_tool_params');
});

test('[TL-1] a link that takes the place of a folder after the check is noticed before the write', async () => {
  const { outer, context } = trap();
  const call = await WRITE_FILE.prepare({ file_path: 'sub/secret.txt', content: 'taken over' }, context);
  renameSync(join(outer, 'ws/sub'), join(outer, 'ws/was-sub'));
  symlinkSync('../out', join(outer, 'ws/sub'));
  expect((await faultOf(() => call.run())).type).toBe('path_not_in_workspace');
  expect(readFileSync(join(outer, 'out/secret.txt'), 'utf8')).toBe('secret');
});

test('[TL-1] whatever parts a path is made of, a place that is given is in the workspace', async () => {
  const { outer, context } = trap();
  mkdirSync(join(outer, 'ws/.. '));
  writeFileSync(join(outer, 'ws/...'), '');
  const part = fc.constantFrom(
    '..',
    '.',
    '',
    'sub',
    'a.txt',
    'folder-link',
    'link-to-link',
    'dangling',
    'circle-a',
    '...',
    '.. ',
    '~',
    'x',
    'ws',
    'out',
    'secret.txt',
    'good-link',
    ' ',
    '\\',
  );
  const path = fc.tuple(fc.constantFrom('', '/', outer, `${outer}/ws`), fc.array(part, { minLength: 1, maxLength: 7 }));
  await fc.assert(
    fc.asyncProperty(path, async ([start, parts]) => {
      const named = start === '' ? parts.join('/') : `${start}/${parts.join('/')}`;
      const place = await placeIn(context, named).catch(() => undefined);
      if (place === undefined) return;
      expect(isWithin(join(outer, 'ws'), place.real)).toBe(true);
      // What the system makes of the name is the same place.
      const real = (() => {
        try {
          return realpathSync(place.path);
        } catch {
          return place.real;
        }
      })();
      expect(real).toBe(place.real);
    }),
    { numRuns: 500 },
  );
});

describe('isWithin', () => {
  test.each([
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a', '/ab', false],
    ['/a', '/', false],
    ['/a/b', '/a', false],
    ['/', '/a', true],
    ['/a', '/a/..b', true],
  ])('[TL-1] %s %s: %s', (folder, path, expected) => {
    expect(isWithin(folder, path)).toBe(expected);
    expect(relative(folder, path)).toBeTypeOf('string');
  });
});
