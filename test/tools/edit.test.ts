import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyPatch } from 'diff';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ToolFault } from '../../src/session/faults.ts';
import { EDIT } from '../../src/tools/edit.ts';
import { localFiles } from '../../src/tools/local-files.ts';
import { applyEdit, inFormOf } from '../../src/tools/text-edit.ts';
import { WRITE_FILE } from '../../src/tools/write-file.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, faultOfCall, runTool, toolContext } from '../support/tools.ts';

/** The text after an edit, or the type of its fault. */
function edited(current: string | undefined, oldString: string, newString: string, replaceAll = false): string {
  try {
    return applyEdit(current, { oldString, newString, replaceAll }, '/x', 1000).text;
  } catch (error) {
    if (error instanceof ToolFault) return error.type;
    throw error;
  }
}

describe('what an edit makes of a text', () => {
  test.each<[string, string | undefined, string, string, boolean, string]>([
    ['one occurrence', 'a b c', 'b', 'X', false, 'a X c'],
    ['all occurrences', 'a b a', 'a', 'X', true, 'X b X'],
    ['overlapping ones count once', 'aaa', 'aa', 'b', false, 'ba'],
    ['signs that mean something in replacements', 'a b', 'b', '$& $1 $$', false, 'a $& $1 $$'],
    ['signs that mean something in patterns', 'a.b a+b', 'a+b', 'c', false, 'a.b c'],
    ['deleting', 'a b', ' b', '', false, 'a'],
    ['none', 'abc', 'x', 'y', false, 'edit_no_occurrence_found'],
    ['several', 'a a', 'a', 'b', false, 'edit_expected_occurrence_mismatch'],
    ['the same', 'a', 'a', 'a', false, 'edit_no_change'],
    ['the same but for line ends', 'a\r\nb', 'a\nb', 'a\r\nb', false, 'edit_no_change'],
    ['no file', undefined, 'a', 'b', false, 'file_not_found'],
    ['a new file', undefined, '', 'b\n', false, 'b\n'],
    ['a first text', '', '', 'b\n', false, 'b\n'],
    ['a first text behind the mark', '\uFEFF', '', 'b', false, '\uFEFFb'],
    ['a new file that exists', 'a', '', 'b', false, 'attempt_to_create_existing_file'],
    ['CRLF', 'a\r\nb\r\nc', 'a\nb', 'x\ny\nz', false, 'x\r\ny\r\nz\r\nc'],
    ['CRLF given as such', 'a\r\nb', 'a\r\nb', 'x\r\ny', false, 'x\r\ny'],
    ['one line of CRLF', 'a\r\nb\r\n', 'a', 'x\ny', false, 'x\r\ny\r\nb\r\n'],
    ['the LF part of both kinds', 'a\nb\r\nc', 'a\n', 'x\n', false, 'x\nb\r\nc'],
    ['the CRLF part of both kinds', 'a\nb\r\nc', 'b\nc', 'x\ny', false, 'a\nx\r\ny'],
    ['the mark stays', '\uFEFFa', 'a', 'b', false, '\uFEFFb'],
    ['growing over the limit', 'a'.repeat(100), 'a', 'b'.repeat(11), true, 'file_too_large'],
  ])('[TL-1] %s', (_, current, oldString, newString, replaceAll, expected) => {
    expect(edited(current, oldString, newString, replaceAll)).toBe(expected);
  });

  test('[TL-1] an edit and its reverse give the text that was there', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r\n', '$', '\uFEFF'), maxLength: 30 });
    fc.assert(
      fc.property(text, text, text, (before, middle, after) => {
        // Unique marks around it, so that each direction finds exactly one place.
        const current = `${before}<${middle}>${after}`;
        const there = edited(current, `<${middle}>`, '<NEW\nTEXT>');
        expect(there).toContain('NEW');
        const withLf = (value: string) => value.replaceAll('\r\n', '\n');
        expect(withLf(edited(there, '<NEW\nTEXT>', `<${middle}>`))).toBe(withLf(current));
      }),
    );
  });

  test('[TL-1] a text written anew keeps the mark and the line ends of the old one', () => {
    expect(inFormOf('\uFEFFa\r\nb', 'x\ny\n')).toBe('\uFEFFx\r\ny\r\n');
    expect(inFormOf('a\nb\r\n', 'x\ny')).toBe('x\ny');
    expect(inFormOf(undefined, 'x\ny')).toBe('x\ny');
    expect(inFormOf('\uFEFFa', '\uFEFFb')).toBe('\uFEFFb');
  });
});

describe('edit', () => {
  test('[TL-1] shows the change before it is made, makes it, and records it in the reference’s shape', async () => {
    const folder = tempFolder({ 'src/a.txt': 'one\ntwo\nthree\n' });
    const path = join(folder, 'src/a.txt');
    const call = await EDIT.prepare({ file_path: path, old_string: 'two', new_string: 'TWO' }, toolContext(folder));
    expect(call.change).toEqual({ path, oldText: 'one\ntwo\nthree\n', newText: 'one\nTWO\nthree\n' });
    expect([call.effect, call.always?.key]).toEqual([undefined, 'edit files']);
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo\nthree\n');
    const output = await call.run();
    expect(readFileSync(path, 'utf8')).toBe('one\nTWO\nthree\n');
    expect(output.text).toBe(`Edited ${path}:\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n`);
    expect(output.display).toEqual({
      fileDiff: expect.stringContaining('--- a.txt\tCurrent\n+++ a.txt\tProposed\n@@ -1,3 +1,3 @@\n'),
      fileName: 'a.txt',
      filePath: path,
      originalContent: 'one\ntwo\nthree\n',
      newContent: 'one\nTWO\nthree\n',
      diffStat: {
        model_added_lines: 1,
        model_removed_lines: 1,
        model_added_chars: 3,
        model_removed_chars: 3,
        user_added_lines: 0,
        user_removed_lines: 0,
        user_added_chars: 0,
        user_removed_chars: 0,
      },
    });
    const { fileDiff } = output.display as { fileDiff: string };
    expect(applyPatch('one\ntwo\nthree\n', fileDiff)).toBe('one\nTWO\nthree\n');
  });

  test('[TL-1] makes a new file, in folders that are missing', async () => {
    const folder = tempFolder();
    const output = await runTool(
      EDIT,
      { file_path: 'x/y.txt', old_string: '', new_string: 'hi\n' },
      toolContext(folder),
    );
    expect(readFileSync(join(folder, 'x/y.txt'), 'utf8')).toBe('hi\n');
    expect(output.text).toMatch(/^Made /);
    expect(output.display).toMatchObject({ originalContent: null, newContent: 'hi\n' });
  });

  test('[TL-1] a file that changed after the person was shown the change is left as it is', async () => {
    const cases: [string, (path: string) => void][] = [
      ['changed', (path) => writeFileSync(path, 'two, and more')],
      ['grown by a space', (path) => writeFileSync(path, 'two ')],
    ];
    for (const [what, meddle] of cases) {
      for (const [tool, args] of [
        [EDIT, { old_string: 'two', new_string: 'TWO' }],
        [WRITE_FILE, { content: 'TWO' }],
      ] as const) {
        const folder = tempFolder({ 'a.txt': 'two' });
        const path = join(folder, 'a.txt');
        const call = await tool.prepare({ file_path: path, ...args }, toolContext(folder));
        meddle(path);
        const left = readFileSync(path, 'utf8');
        expect((await faultOf(() => call.run())).type, what).toBe('file_changed');
        expect(readFileSync(path, 'utf8')).toBe(left);
      }
    }
    const folder = tempFolder();
    const call = await WRITE_FILE.prepare({ file_path: 'new.txt', content: 'mine' }, toolContext(folder));
    writeFileSync(join(folder, 'new.txt'), 'somebody else’s');
    expect((await faultOf(() => call.run())).type).toBe('file_changed');
  });

  test('[TL-1] refuses binary files, folders and wrong arguments before anybody is asked', async () => {
    const folder = tempFolder({ 'b.bin': '\0\x01', 'a.txt': 'a' });
    mkdirSync(join(folder, 'dir'));
    const context = toolContext(folder);
    const edit = { old_string: 'a', new_string: 'b' };
    const cases = [
      [EDIT, { file_path: 'b.bin', ...edit }, 'binary_file'],
      [EDIT, { file_path: 'dir', ...edit }, 'target_is_directory'],
      [EDIT, { file_path: 'none.txt', ...edit }, 'file_not_found'],
      [EDIT, { file_path: 'a.txt', old_string: 'a' }, 'invalid_tool_params'],
      [EDIT, { file_path: 'a.txt', ...edit, replace_all: 'yes' }, 'invalid_tool_params'],
      [WRITE_FILE, { file_path: 'b.bin', content: '' }, 'binary_file'],
      [WRITE_FILE, { file_path: 'dir', content: '' }, 'target_is_directory'],
      [WRITE_FILE, { file_path: 'a.txt' }, 'invalid_tool_params'],
      [WRITE_FILE, { file_path: 'a.txt', content: '\ud83d' }, 'invalid_tool_params'],
    ] as const;
    for (const [tool, args, type] of cases) {
      const fault = await faultOf(() => tool.prepare(args, context));
      expect(fault.type, JSON.stringify(args)).toBe(type);
    }
  });

  test('[TL-1] what git or an agent would run is no mere change of a file', async () => {
    const folder = tempFolder({ '.git/config': '' });
    for (const path of ['.git/hooks/pre-commit', '.GIT/config', 'sub/.qwen/settings.json']) {
      const call = await WRITE_FILE.prepare({ file_path: path, content: 'x' }, toolContext(folder));
      expect([call.effect, call.always], path).toEqual(['execute', undefined]);
    }
    const linked = tempFolder({ 'git/config': '' });
    symlinkSync('git', join(linked, '.git'));
    const hook = await WRITE_FILE.prepare({ file_path: '.git/hooks/x', content: 'x' }, toolContext(linked));
    expect(hook.effect).toBe('execute');
    const call = await WRITE_FILE.prepare({ file_path: '.github/x.yml', content: 'x' }, toolContext(folder));
    expect(call.effect).toBeUndefined();
  });
});

describe('write_file', () => {
  test('[TL-1] writes a new file and over an old one', async () => {
    const folder = tempFolder();
    const path = join(folder, 'w/w.txt');
    const write = (content: string) => runTool(WRITE_FILE, { file_path: path, content }, toolContext(folder));
    expect((await write('hello\n')).text).toContain(`Made ${path}:\n`);
    const over = await write('hello\r\nworld');
    expect(over.text).toContain(`Wrote ${path}:\n`);
    expect(over.display).toMatchObject({ originalContent: 'hello\n', newContent: 'hello\r\nworld' });
    expect(readFileSync(path, 'utf8')).toBe('hello\r\nworld');
  });

  test('[TL-1] goes to the person’s editor where that keeps the files', async () => {
    const folder = tempFolder({ 'a.txt': 'on the disk' });
    const written: string[] = [];
    const files = {
      readText: async () => 'in the editor',
      writeText: async (path: string, text: string) => void written.push(path, text),
    };
    const output = await runTool(
      EDIT,
      { file_path: 'a.txt', old_string: 'in', new_string: 'IN' },
      toolContext(folder, { files }),
    );
    expect(written).toEqual([join(folder, 'a.txt'), 'IN the editor']);
    expect(output.display).toMatchObject({ originalContent: 'in the editor' });
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('on the disk');
  });

  test('[TL-1] a huge change is made, but neither shown nor kept as a whole', async () => {
    const folder = tempFolder();
    const content = `${'x'.repeat(99)}\n`.repeat(30_000);
    const call = await WRITE_FILE.prepare({ file_path: 'huge.txt', content }, toolContext(folder));
    expect(call.change).toBeUndefined();
    const { text, display } = await call.run();
    expect(readFileSync(join(folder, 'huge.txt'), 'utf8')).toBe(content);
    expect(text.length).toBeLessThan(10_000);
    expect(JSON.stringify(display).length).toBeLessThan(400_000);
    expect(display).not.toHaveProperty('newContent');
    const fault = await faultOfCall(
      WRITE_FILE,
      { file_path: 'more.txt', content: 'ä'.repeat(6_000_000) },
      toolContext(folder),
    );
    expect([fault.type, existsSync(join(folder, 'more.txt'))]).toEqual(['file_too_large', false]);
  });

  test('[TL-1] texts that have nothing in common do not hold the process up', async () => {
    const lines = (name: string) => Array.from({ length: 20_000 }, (_, index) => `${name} ${index}`).join('\n');
    const folder = tempFolder({ 'a.txt': lines('old') });
    const started = performance.now();
    await runTool(WRITE_FILE, { file_path: 'a.txt', content: lines('new') }, toolContext(folder));
    expect(performance.now() - started).toBeLessThan(5000);
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe(lines('new'));
  });

  test('[TL-1] an abort before the write leaves the file', async () => {
    const folder = tempFolder({ 'a.txt': 'old' });
    const controller = new AbortController();
    const context = toolContext(folder, { signal: controller.signal, files: localFiles() });
    const call = await WRITE_FILE.prepare({ file_path: 'a.txt', content: 'new' }, context);
    controller.abort(new Error('stopped'));
    await expect(call.run()).rejects.toThrow('stopped');
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('old');
  });
});
