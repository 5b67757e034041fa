import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineSplitter } from '../../src/acp/lines.ts';

/** Every line of the chunks; a line over the limit as a symbol. */
const TOO_LONG = Symbol('too long');

function split(chunks: readonly Buffer[], limit = 1000): (string | typeof TOO_LONG)[] {
  const splitter = new LineSplitter(limit);
  const lines: (string | typeof TOO_LONG)[] = [];
  const take = (line: ReturnType<LineSplitter['next']>) => {
    if (line) lines.push(line.kind === 'text' ? line.text : TOO_LONG);
  };
  for (const chunk of chunks) {
    splitter.push(chunk);
    for (let line = splitter.next(); line; line = splitter.next()) take(line);
  }
  take(splitter.end());
  return lines;
}

const BOM = '\u{feff}';

describe('lines', () => {
  test.each([
    ['two lines', 'a\nb\n', ['a', 'b']],
    ['a last line without its newline', 'a\nb', ['a', 'b']],
    ['blank lines are left out', '\n \n\t\r\n\na\n\r\n', ['a']],
    ['CRLF keeps its carriage return, which JSON ignores', 'a\r\nb\r\n', ['a\r', 'b\r']],
    ['a byte order mark on the first line', `${BOM}a\nb\n`, ['a', 'b']],
    ['a byte order mark on a later line is not touched', `a\n${BOM}b\n`, ['a', `${BOM}b`]],
    ['only a byte order mark', `${BOM}\n`, []],
    ['no bytes', '', []],
  ])('[ACP-5] %s', (_, bytes, expected) => {
    expect(split([Buffer.from(bytes)])).toEqual(expected);
  });

  test('[ACP-5] any chunking of the bytes gives the same lines, characters split in the middle included', () => {
    const line = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll(/[\r\n]/g, ''));
    fc.assert(
      fc.property(
        fc.array(line),
        fc.boolean(),
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        (lines, crlf, sizes) => {
          const bytes = Buffer.from(lines.map((text) => text + (crlf ? '\r\n' : '\n')).join(''));
          expect(split(cut(bytes, sizes))).toEqual(split([bytes]));
        },
      ),
    );
  });

  test('[ACP-5] any chunking reports the same lines as too long', () => {
    const line = fc.string({ unit: fc.constantFrom('a', 'é', '😀'), maxLength: 20 });
    fc.assert(
      fc.property(fc.array(line), fc.infiniteStream(fc.integer({ min: 1, max: 9 })), (lines, sizes) => {
        const expected = lines
          .filter((text) => text !== '')
          .map((text) => (Buffer.byteLength(text) > 16 ? TOO_LONG : text));
        expect(split(cut(Buffer.from(lines.map((text) => `${text}\n`).join('')), sizes), 16)).toEqual(expected);
      }),
    );
  });

  test('[ACP-5] a line of the limit passes, one byte more does not', () => {
    expect(split([Buffer.from(`${'x'.repeat(16)}\n${'y'.repeat(17)}\nz\n`)], 16)).toEqual([
      'x'.repeat(16),
      TOO_LONG,
      'z',
    ]);
  });

  test('[ACP-5] an endless line is reported before its end and not kept', () => {
    const splitter = new LineSplitter(1024 * 1024);
    const chunk = Buffer.alloc(64 * 1024, 'x');
    let reported = 0;
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 20_000; i++) {
      splitter.push(chunk);
      if (splitter.next()) reported++;
    }
    expect(reported).toBe(1);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
    splitter.push(Buffer.from('\nb\n'));
    expect(splitter.next()).toEqual({ kind: 'text', text: 'b' });
  });
});

function cut(bytes: Buffer, sizes: fc.Stream<number>): Buffer[] {
  const chunks: Buffer[] = [];
  let offset = 0;
  for (const size of sizes) {
    if (offset >= bytes.length) break;
    chunks.push(bytes.subarray(offset, offset + size));
    offset += size;
  }
  return chunks;
}
