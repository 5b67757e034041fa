import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GLOB } from '../../src/tools/glob.ts';
import { findRipgrep } from '../../src/tools/grep-ripgrep.ts';
import { grepSearch } from '../../src/tools/grep-search.ts';
import { GuardedPattern } from '../../src/tools/guarded-pattern.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, faultOfCall, runTool, toolContext } from '../support/tools.ts';

const { signal } = new AbortController();
const aborted = AbortSignal.abort(new Error('stopped'));

/** What ignore files, links, encodings and sizes there are. */
function tree(): string {
  const folder = tempFolder({
    'a.txt': 'needle one\nNEEDLE two\nnothing\n',
    'b.ts': 'const needle = 1;\r\nlast needle without end',
    '.hidden/c.txt': 'hidden needle\n',
    '.git/d.txt': 'needle of git\n',
    '.gitignore': 'ignored.txt\nbuild/\n*.log\n!keep.log\n/root-only.txt\nsub/deep/x.txt\n',
    '.ignore': 'a.txt\n',
    'ignored.txt': 'needle\n',
    'build/e.txt': 'needle built\n',
    'build/z.log': 'needle logged\n',
    'x.log': 'needle\n',
    'keep.log': 'needle kept\n',
    'root-only.txt': 'needle\n',
    'sub/root-only.txt': 'needle below\n',
    'sub/.gitignore': '!x.log\nf*.md\n',
    'sub/x.log': 'needle again\n',
    'sub/f1.md': 'needle\n',
    'sub/deep/x.txt': 'needle\n',
    'sub/deep/y.txt': 'deep needle\n',
    'nul.dat': 'needle first\nthen \0 binary\n',
    'long.txt': `${'x'.repeat(1000)}needle\n${'y'.repeat(70_000)}needle\nneedle after\n`,
    'bom.txt': '\uFEFFneedle behind a mark\n',
    'ümlaut ☃.txt': 'NÄEDLE, needle ☃\n',
  });
  writeFileSync(join(folder, 'utf16.txt'), Buffer.from('\uFEFFneedle of two bytes\n', 'utf16le'));
  writeFileSync(join(folder, 'latin1.txt'), Buffer.from('n\xe4edle needle\n', 'latin1'));
  writeFileSync(join(folder, 'huge.txt'), 'needle\n'.repeat(1_600_000));
  symlinkSync('a.txt', join(folder, 'link.txt'));
  symlinkSync('sub', join(folder, 'linked'));
  mkdirSync(join(folder, 'closed'));
  chmodSync(join(folder, 'closed'), 0o000);
  onTestFinished(() => chmodSync(join(folder, 'closed'), 0o755));
  return folder;
}

const QUERIES: readonly Record<string, unknown>[] = [
  { pattern: 'needle' },
  { pattern: 'needle', limit: 3 },
  { pattern: '^needle' },
  { pattern: 'needle$' },
  { pattern: '^const.*;$' },
  { pattern: 'n[äe]+dle' },
  { pattern: '(?i)Needle' },
  { pattern: 'NEEDLE', glob: '*.ts' },
  { pattern: 'needle', glob: 'sub/**' },
  { pattern: 'needle', glob: '**/deep/*.{txt,md}' },
  { pattern: 'needle', glob: '!*.txt' },
  { pattern: 'needle', path: 'sub' },
  { pattern: 'needle', path: 'sub', glob: 'deep/**' },
  { pattern: 'needle', path: 'build' },
  { pattern: 'needle', path: 'a.txt' },
  { pattern: 'needle', path: 'ignored.txt' },
  { pattern: 'needle', path: 'nul.dat' },
  { pattern: '(?<=last )needle' },
  { pattern: '(n)eedl\\1' },
  { pattern: '\\bneedle\\b.*\\d' },
  { pattern: 'no such thing' },
  { pattern: '--needle' },
  { pattern: '☃' },
];

/** Neither a tool that a machine may lack, nor one that it may have, shall decide what a model finds. */
test.skipIf(findRipgrep(process.env['PATH']) === undefined)(
  '[TL-1] grep_search finds the same with ripgrep and without',
  async () => {
    const folder = tree();
    const context = toolContext(folder);
    for (const query of QUERIES) {
      const without = await runTool(grepSearch(''), query, context);
      expect.soft(await runTool(grepSearch(), query, context), JSON.stringify(query)).toEqual(without);
    }
  },
);

const WAYS: readonly { readonly way: string; readonly path: string | undefined }[] = [
  { way: 'without ripgrep', path: '' },
  ...(findRipgrep(process.env['PATH']) === undefined ? [] : [{ way: 'with ripgrep', path: process.env['PATH'] }]),
];

describe.each(WAYS)('grep_search $way', ({ path }) => {
  const grep = grepSearch(path);
  const search = async (folder: string, args: object) => {
    const { text } = await runTool(grep, { pattern: 'needle', ...args }, toolContext(folder));
    return text.replaceAll(`${folder}/`, '').split('\n');
  };

  test('[TL-1] finds lines without regard to case, and leaves out what git ignores, links, binary and huge files', async () => {
    const folder = tree();
    expect(await search(folder, {})).toEqual([
      'Found 15 matching lines.',
      '.hidden/c.txt:1:hidden needle',
      'a.txt:1:needle one',
      'a.txt:2:NEEDLE two',
      'b.ts:1:const needle = 1;',
      'b.ts:2:last needle without end',
      'bom.txt:1:needle behind a mark',
      'keep.log:1:needle kept',
      'latin1.txt:1:n�edle needle',
      `long.txt:1:${'x'.repeat(400)}…`,
      'long.txt:3:needle after',
      'sub/deep/y.txt:1:deep needle',
      'sub/root-only.txt:1:needle below',
      'sub/x.log:1:needle again',
      'utf16.txt:1:needle of two bytes',
      'ümlaut ☃.txt:1:NÄEDLE, needle ☃',
    ]);
    expect(await search(folder, { limit: 2 })).toEqual([
      'Found 2 matching lines, there are more.',
      '.hidden/c.txt:1:hidden needle',
      'a.txt:1:needle one',
    ]);
    expect(await search(folder, { path: 'build' })).toEqual([
      'Found 2 matching lines.',
      'build/e.txt:1:needle built',
      'build/z.log:1:needle logged',
    ]);
    expect(await search(folder, { pattern: '(?<=last )needle' })).toEqual([
      'Found 1 matching line.',
      'b.ts:2:last needle without end',
    ]);
  });

  test('[TL-1] bounds what it gives', async () => {
    const folder = tempFolder({ 'a.txt': 'needle\n'.repeat(5000), 'b.txt': `needle ${'x'.repeat(380)}\n`.repeat(500) });
    expect(await search(folder, { path: 'a.txt' })).toHaveLength(251);
    const many = await search(folder, { path: 'a.txt', limit: 100_000 });
    expect(many[0]).toBe(`Found ${many.length - 1} matching lines, there are more.`);
    expect(many.length).toBeLessThanOrEqual(1001);
    expect((await search(folder, { path: 'b.txt' })).join('\n').length).toBeLessThan(33_000);
  });

  test('[TL-1] says what is wrong with a pattern or a path', async () => {
    const context = toolContext(tempFolder({ 'a.txt': 'x' }));
    const cases = [
      [{ pattern: 'fo(' }, 'invalid_tool_params'],
      [{ pattern: '' }, 'invalid_tool_params'],
      [{ pattern: 'a\nb' }, 'invalid_tool_params'],
      [{ pattern: 'x'.repeat(2000) }, 'invalid_tool_params'],
      [{ pattern: 'x', glob: 7 }, 'invalid_tool_params'],
      [{ pattern: 'x', limit: 0 }, 'invalid_tool_params'],
      [{ pattern: 'x', path: 'none' }, 'file_not_found'],
    ] as const;
    for (const [args, type] of cases) {
      expect((await faultOfCall(grep, args, context)).type, JSON.stringify(args).slice(0, 80)).toBe(type);
    }
  });

  test('[TL-1] searches every folder of the workspace once', async () => {
    const folder = tempFolder({ 'ws/a.txt': 'needle', 'ws/in/b.txt': 'needle', 'other/c.txt': 'needle' });
    const roots = [join(folder, 'ws/in'), join(folder, 'other'), join(folder, 'gone')];
    const { text } = await runTool(grep, { pattern: 'needle' }, toolContext(join(folder, 'ws'), { roots }));
    expect(text.split('\n').slice(1)).toEqual(
      ['ws/a.txt', 'ws/in/b.txt', 'other/c.txt'].map((name) => `${join(folder, name)}:1:needle`),
    );
  });

  test('[TL-1] an abort ends it with its reason', async () => {
    const folder = tree();
    const early = runTool(grep, { pattern: 'needle' }, toolContext(folder, { signal: aborted }));
    await expect(early).rejects.toThrow('stopped');
    const controller = new AbortController();
    const late = runTool(grep, { pattern: 'absent' }, toolContext(folder, { signal: controller.signal }));
    setImmediate(() => controller.abort(new Error('stopped')));
    await expect(late).rejects.toThrow('stopped');
  });

  test('[TL-1] an expression that would go on for ever is stopped', async () => {
    // The look ahead keeps it away from ripgrep, which knows no such expressions.
    const context = toolContext(tempFolder({ 'a.txt': `${'a'.repeat(50)}!` }));
    const fault = await faultOfCall(grep, { pattern: '(?=a)(a+)+$' }, context);
    expect(fault.message).toContain('takes too long');
  });
});

test('[TL-1] a program named rg in the workspace is never run', () => {
  const folder = tempFolder({ rg: '#!/bin/sh\necho caught\n', 'bin/rg': '#!/bin/sh\n' });
  chmodSync(join(folder, 'rg'), 0o755);
  expect(findRipgrep(`.:${relative(process.cwd(), folder)}::`)).toBeUndefined();
  expect(findRipgrep(folder)).toBe(join(folder, 'rg'));
  // Not to be executed.
  expect(findRipgrep(join(folder, 'bin'))).toBeUndefined();
});

describe('glob', () => {
  const glob = async (folder: string, args: object) => {
    const { text } = await runTool(GLOB, args as Record<string, unknown>, toolContext(folder));
    return text.replaceAll(`${folder}/`, '').split('\n').slice(1);
  };

  test('[TL-1] finds files by pattern, the newest first', async () => {
    const folder = tempFolder({
      'old.ts': '',
      'new.ts': '',
      'src/a.ts': '',
      'src/deep/b.ts': '',
      'src/deep/c.js': '',
      '.dot/d.ts': '',
      '[odd]/e.ts': '',
      'node_modules/m/f.ts': '',
      '.git/g.ts': '',
      '.gitignore': 'node_modules\n',
    });
    const ages = ['new.ts', 'src/deep/b.ts', 'src/a.ts', '.dot/d.ts', '[odd]/e.ts', 'src/deep/c.js', 'old.ts'];
    ages.forEach((name, index) => void utimesSync(join(folder, name), 2_000_000_000, 2_000_000_000 - index));
    symlinkSync('old.ts', join(folder, 'link.ts'));
    symlinkSync('src', join(folder, 'linked'));
    expect(await glob(folder, { pattern: '**/*.ts' })).toEqual(ages.filter((name) => name.endsWith('.ts')));
    expect(await glob(folder, { pattern: '*.ts' })).toEqual(['new.ts', 'old.ts']);
    expect(await glob(folder, { pattern: './src/*.ts' })).toEqual(['src/a.ts']);
    expect(await glob(folder, { pattern: 'src/**/*.{ts,js}' })).toEqual(['src/deep/b.ts', 'src/a.ts', 'src/deep/c.js']);
    expect(await glob(folder, { pattern: `${folder}/src/**/*.js` })).toEqual(['src/deep/c.js']);
    expect(await glob(folder, { pattern: 'deep/*', path: 'src' })).toEqual(['src/deep/b.ts', 'src/deep/c.js']);
    expect(await glob(folder, { pattern: 'src/../old.ts' })).toEqual(['old.ts']);
    expect(await glob(folder, { pattern: 'old.ts' })).toEqual(['old.ts']);
    expect(await glob(folder, { pattern: '\\[odd\\]/*' })).toEqual(['[odd]/e.ts']);
    // Named on purpose, though it is ignored.
    expect(await glob(folder, { pattern: 'node_modules/m/*' })).toEqual(['node_modules/m/f.ts']);
    expect(await glob(folder, { pattern: '*.none' })).toEqual([]);
    expect(await glob(folder, { pattern: 'none/**' })).toEqual([]);
    expect(await glob(folder, { pattern: 'src' })).toEqual([]);
  });

  test('[TL-1] is bounded, abortable and says what is no pattern', async () => {
    const folder = tempFolder();
    for (let index = 0; index < 700; index++) writeFileSync(join(folder, `f${index}`), '');
    const { text, display } = await runTool(GLOB, { pattern: '*' }, toolContext(folder));
    expect(text.split('\n')).toHaveLength(201);
    expect(text).toMatch(/^Found 700 files, the newest 200 are shown\./);
    expect(display).toBe('Found 700 files');
    const stopped = runTool(GLOB, { pattern: '*' }, toolContext(folder, { signal: aborted }));
    await expect(stopped).rejects.toThrow('stopped');
    const context = toolContext(folder);
    for (const pattern of ['', 'x'.repeat(2000)]) {
      expect((await faultOfCall(GLOB, { pattern }, context)).type).toBe('invalid_tool_params');
    }
    // Names and a pattern that would be compared for years.
    writeFileSync(join(folder, 'a'.repeat(250)), '');
    const fault = await faultOfCall(GLOB, { pattern: `${'*a'.repeat(20)}*b` }, context);
    expect(fault.message).toContain('takes too long');
  });
});

test('[TL-1] a guarded pattern finds what the plain one does, in slices, and ends on abort', async () => {
  const pattern = new GuardedPattern(/x\d*5$/);
  const texts = Array.from({ length: 3000 }, (_, index) => `${'-'.repeat(300)}x${index}`);
  const expected = [...texts.keys()].filter((index) => index % 10 === 5);
  expect(await pattern.find(texts, signal)).toEqual(expected);
  expect(await pattern.find([], signal)).toEqual([]);
  await expect(pattern.find(texts, aborted)).rejects.toThrow('stopped');
  const bad = new GuardedPattern(/(a+)+$/);
  expect((await faultOf(() => bad.find([`${'a'.repeat(50)}!`], signal))).type).toBe('invalid_tool_params');
  // It is as good as new.
  expect(await bad.find(['aaa'], signal)).toEqual([0]);
});
