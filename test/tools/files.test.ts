import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LIST_DIRECTORY } from '../../src/tools/list-directory.ts';
import { localFiles, MAX_TEXT_BYTES } from '../../src/tools/local-files.ts';
import { READ_FILE } from '../../src/tools/read-file.ts';
import { makeFifo } from '../support/fifo.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, faultOfCall, runTool, toolContext } from '../support/tools.ts';

const files = localFiles();
const { signal } = new AbortController();
const aborted = AbortSignal.abort(new Error('stopped'));

describe('local files', () => {
  test('[TL-1] text comes and goes as it is, byte order mark and line ends included', async () => {
    const folder = tempFolder();
    for (const text of ['', 'a', '\uFEFFa\r\nb\r\n', 'a\nb\r\nc', 'ä€🙂\n', '\r\r\n']) {
      const path = join(folder, 'new/deep/x.txt');
      await files.writeText(path, text, signal);
      expect(readFileSync(path)).toEqual(Buffer.from(text));
      expect(await files.readText(path, signal)).toBe(text);
    }
    expect(readdirSync(join(folder, 'new/deep'))).toEqual(['x.txt']);
    expect(await files.readText(join(folder, 'nothing'), signal)).toBeUndefined();
    expect(await files.readText(join(folder, 'new/deep/x.txt/below'), signal)).toBeUndefined();
  });

  test('[TL-1] a write keeps the mode, other names of the file and the link that leads to it', async () => {
    const folder = tempFolder({ 'script.sh': 'old', 'one.txt': 'old' });
    const at = (name: string) => join(folder, name);
    chmodSync(at('script.sh'), 0o751);
    linkSync(at('one.txt'), at('two.txt'));
    symlinkSync('script.sh', at('link'));
    await files.writeText(at('link'), 'new', signal);
    await files.writeText(at('one.txt'), 'new', signal);
    expect(statSync(at('script.sh')).mode & 0o777).toBe(0o751);
    expect(readFileSync(at('script.sh'), 'utf8')).toBe('new');
    expect(readFileSync(at('two.txt'), 'utf8')).toBe('new');
    expect(readdirSync(folder).sort()).toEqual(['link', 'one.txt', 'script.sh', 'two.txt']);
  });

  test('[TL-1] what is no text file is refused at once, for reading and writing', async () => {
    const folder = tempFolder({ 'nul.txt': 'a\0b', folder: '' });
    const at = (name: string) => join(folder, name);
    writeFileSync(at('latin1.txt'), Buffer.from([0x67, 0xfc, 0x6e]));
    writeFileSync(at('huge.txt'), '');
    truncateSync(at('huge.txt'), MAX_TEXT_BYTES + 1);
    makeFifo(at('fifo'));
    mkdirSync(at('dir'));
    const server = createServer().listen(at('socket'));
    onTestFinished(() => void server.close());
    const kinds = { 'nul.txt': 'binary_file', 'latin1.txt': 'binary_file', 'huge.txt': 'file_too_large' } as const;
    for (const [name, type] of Object.entries(kinds)) {
      expect((await faultOf(() => files.readText(at(name), signal))).type, name).toBe(type);
    }
    const specials = { fifo: 'execution_failed', socket: 'execution_failed', dir: 'target_is_directory' } as const;
    for (const [name, type] of Object.entries({ ...specials, '/dev/zero': 'execution_failed' })) {
      const path = name.startsWith('/') ? name : at(name);
      expect((await faultOf(() => files.readText(path, signal))).type, name).toBe(type);
      expect((await faultOf(() => files.writeText(path, 'x', signal))).type, name).toBe(type);
    }
    expect((await faultOf(() => files.writeText(at('x'), 'x'.repeat(MAX_TEXT_BYTES + 1), signal))).type).toBe(
      'file_too_large',
    );
    expect(existsSync(at('x'))).toBe(false);
  });

  test('[TL-1] an abort stops a read and a write with its reason, and leaves nothing behind', async () => {
    const folder = tempFolder({ 'a.txt': 'old' });
    const path = join(folder, 'a.txt');
    await expect(files.readText(path, aborted)).rejects.toThrow('stopped');
    await expect(files.writeText(path, 'new', aborted)).rejects.toThrow('stopped');
    await expect(files.writeText(join(folder, 'deep/b.txt'), 'new', aborted)).rejects.toThrow('stopped');
    expect(readdirSync(folder)).toEqual(['a.txt']);
    expect(readFileSync(path, 'utf8')).toBe('old');
  });

  test.skipIf(process.getuid?.() === 0)('[TL-1] a file that may not be written is not replaced', async () => {
    const folder = tempFolder({ 'a.txt': 'old' });
    chmodSync(join(folder, 'a.txt'), 0o444);
    const fault = await faultOf(() => files.writeText(join(folder, 'a.txt'), 'new', signal));
    expect(fault.type).toBe('permission_denied');
  });
});

describe('read_file', () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}`).join('\n');

  test('[TL-1] gives a whole short file, without byte order mark and with LF', async () => {
    const context = toolContext(tempFolder({ 'a.txt': '\uFEFFone\r\ntwo\r\n', 'empty.txt': '' }));
    expect(await runTool(READ_FILE, { file_path: 'a.txt' }, context)).toEqual({ text: 'one\ntwo', display: '' });
    expect((await runTool(READ_FILE, { file_path: 'empty.txt' }, context)).text).toBe('The file is empty.');
  });

  test('[TL-1] gives a part of a long one and says how to go on', async () => {
    const context = toolContext(tempFolder({ 'a.txt': `${lines(1, 2500)}\n` }));
    const read = (args: object) => runTool(READ_FILE, { file_path: 'a.txt', ...args }, context);
    expect((await read({})).text).toBe(
      `[Lines 1 to 1000 of 2500. To go on, read with offset 1000.]\n${lines(1, 1000)}`,
    );
    expect(await read({ offset: 2400, limit: null })).toEqual({
      text: `[Lines 2401 to 2500 of 2500.]\n${lines(2401, 2500)}`,
      display: 'Read lines 2401 to 2500 of 2500 of a.txt',
    });
    expect((await read({ offset: 9, limit: 1 })).text).toBe(
      '[Lines 10 to 10 of 2500. To go on, read with offset 10.]\nline 10',
    );
    expect((await read({ offset: 3000 })).text).toBe('The file has 2500 lines; there is nothing after line 3000.');
  });

  test('[TL-1] cuts long lines and a long whole, and says so', async () => {
    const long = 'x'.repeat(5000);
    const context = toolContext(
      tempFolder({ 'a.txt': `${long}\nend\n`, 'b.txt': `${'y'.repeat(1500)}\n`.repeat(900) }),
    );
    const cut = (await runTool(READ_FILE, { file_path: 'a.txt' }, context)).text;
    expect(cut).toMatch(
      /^\[Lines 1 to 2 of 2\. 1 long line is cut\.\]\nx{2000}… \[3000 more characters in this line\]\nend$/,
    );
    const whole = (await runTool(READ_FILE, { file_path: 'b.txt' }, context)).text;
    expect(whole).toMatch(/^\[Lines 1 to 43 of 900\. To go on, read with offset 43\.\]/);
    expect(whole.length).toBeLessThan(66_000);
  });

  test('[TL-1] reads from a file of any size without holding it', async () => {
    const folder = tempFolder({ 'a.txt': `\uFEFF${lines(1, 20)}\n` });
    const path = join(folder, 'a.txt');
    // 11 MiB of text, then a line to find.
    const block = `${'z'.repeat(1023)}\n`.repeat(1024);
    for (let mebibytes = 0; mebibytes < 11; mebibytes++) writeFileSync(path, block, { flag: 'a' });
    writeFileSync(path, 'found me\n', { flag: 'a' });
    const context = toolContext(folder);
    const read = (args: object) => runTool(READ_FILE, { file_path: path, ...args }, context);
    expect((await read({ limit: 2 })).text).toBe(
      '[Lines 1 to 2 of many. To go on, read with offset 2.]\nline 1\nline 2',
    );
    expect((await read({ offset: 20 + 11 * 1024 })).text).toBe('[Lines 11285 to 11285 of 11285.]\nfound me');
    const controller = new AbortController();
    const reading = runTool(
      READ_FILE,
      { file_path: path, offset: 11284 },
      toolContext(folder, { signal: controller.signal }),
    );
    controller.abort(new Error('stopped'));
    await expect(reading).rejects.toThrow('stopped');
    truncateSync(path, MAX_TEXT_BYTES + 10_000_000);
    expect((await faultOfCall(READ_FILE, { file_path: path, offset: 20_000 }, context)).type).toBe('binary_file');
  });

  test('[TL-1] takes what the person’s editor has, saved or not', async () => {
    const folder = tempFolder({ 'a.txt': 'saved' });
    const editor = {
      ...files,
      readText: async (path: string) => (path.endsWith('.txt') ? `open: ${path}` : undefined),
    };
    const context = toolContext(folder, { files: editor });
    for (const name of ['a.txt', 'never-saved.txt']) {
      expect((await runTool(READ_FILE, { file_path: name }, context)).text).toBe(`open: ${join(folder, name)}`);
    }
    expect((await faultOfCall(READ_FILE, { file_path: 'b.md' }, context)).type).toBe('file_not_found');
  });

  test('[TL-1] refuses what it cannot read', async () => {
    const folder = tempFolder({ 'a.txt': 'x', 'image.png': '\x89PNG\r\n\x1a\n\0\0' });
    makeFifo(join(folder, 'fifo'));
    const context = toolContext(folder);
    const cases = [
      [{ file_path: 'nothing.txt' }, 'file_not_found'],
      [{ file_path: '.' }, 'target_is_directory'],
      [{ file_path: 'image.png' }, 'binary_file'],
      [{ file_path: 'fifo' }, 'execution_failed'],
      [{}, 'invalid_tool_params'],
      [{ file_path: ' ' }, 'invalid_tool_params'],
      [{ file_path: 7 }, 'invalid_tool_params'],
      [{ file_path: 'a.txt', offset: -1 }, 'invalid_tool_params'],
      [{ file_path: 'a.txt', offset: 1.5 }, 'invalid_tool_params'],
      [{ file_path: 'a.txt', limit: 0 }, 'invalid_tool_params'],
      [{ file_path: 'a.txt', limit: '5' }, 'invalid_tool_params'],
    ] as const;
    for (const [args, type] of cases) {
      expect((await faultOfCall(READ_FILE, args, context)).type, JSON.stringify(args)).toBe(type);
    }
  });
});

describe('list_directory', () => {
  test('[TL-1] lists folders first and leaves out what git ignores', async () => {
    const folder = tempFolder({
      '.gitignore': '*.log\n/build/\n!keep.log\n',
      'b.txt': '',
      'a.log': '',
      'keep.log': '',
      'build/x': '',
      'src/sub/.gitignore': 'y',
      'src/sub/y': '',
      '.git/config': '',
      'two\nlines': '',
    });
    symlinkSync('b.txt', join(folder, 'link'));
    makeFifo(join(folder, 'pipe'));
    const context = toolContext(folder);
    const list = async (args: object) =>
      (await runTool(LIST_DIRECTORY, { path: folder, ...args }, context)).text.split('\n');
    const everything = [
      '[DIR] .git',
      '[DIR] src',
      '.gitignore',
      'b.txt',
      'keep.log',
      '[LINK] link',
      '[SPECIAL] pipe',
      '"two\\nlines"',
    ];
    expect(await list({})).toEqual([`${folder} has 8 items (2 ignored by git).`, ...everything]);
    expect((await list({ ignore: ['*.txt', 'sr*'] })).slice(1)).toEqual(
      everything.filter((name) => !/\.txt|src/.test(name)),
    );
    expect(await list({ file_filtering_options: { respect_git_ignore: false } })).toContain('a.log');
    expect(await list({ path: 'src/sub' })).toEqual([`${folder}/src/sub has 1 item (1 ignored by git).`, '.gitignore']);
    // Named on purpose, though it is ignored.
    expect(await list({ path: 'build' })).toEqual([`${folder}/build has 1 item.`, 'x']);
  });

  test('[TL-1] is bounded and abortable, and says what is no folder', async () => {
    const folder = tempFolder({ 'a.txt': '' });
    mkdirSync(join(folder, 'many'));
    for (let index = 0; index < 1100; index++) writeFileSync(join(folder, 'many', `f${index}`), '');
    const context = toolContext(folder);
    const many = await runTool(LIST_DIRECTORY, { path: 'many' }, context);
    expect(many.text.split('\n')).toHaveLength(1001);
    expect(many.display).toBe('Listed 1100 items (100 not shown)');
    await expect(runTool(LIST_DIRECTORY, { path: 'many' }, toolContext(folder, { signal: aborted }))).rejects.toThrow(
      'stopped',
    );
    expect((await faultOfCall(LIST_DIRECTORY, { path: 'a.txt' }, context)).type).toBe('path_is_not_a_directory');
    expect((await faultOfCall(LIST_DIRECTORY, { path: 'none' }, context)).type).toBe('file_not_found');
    expect((await faultOfCall(LIST_DIRECTORY, { path: '.', ignore: 'x' }, context)).type).toBe('invalid_tool_params');
  });
});
