import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limit } from '../../src/tools/mcp-fetch.ts';
import { LineCutter } from '../../src/tools/mcp-lines.ts';
import { mcpToolName, mcpToolNames, printable } from '../../src/tools/mcp-names.ts';

// As qwen-code 0.24.4 names them.
test.each([
  ['files', 'read', 'mcp__files__read'],
  ['my server', 'read.file', 'mcp__my_server__read_file_0yccx2o'],
  ['Größe', 'größe', 'mcp__Gr__e__gr__e_1hf2zm1'],
  ['s', 't'.repeat(80), `mcp__s__${'t'.repeat(47)}_0q6s9m4`],
  ['s'.repeat(30), 't'.repeat(26), `mcp__${'s'.repeat(30)}__${'t'.repeat(26)}`],
  ['s'.repeat(30), 't'.repeat(27), `mcp__${'s'.repeat(30)}__${'t'.repeat(18)}_01yqrl3`],
  ['🙂', 'x', 'mcp______x_04qtla8'],
  ['', '', 'mcp____'],
])('[TL-2] the tool of server %j named %j', (server, tool, name) => {
  expect(mcpToolName(server, tool)).toBe(name);
});

test('[TL-2] the names of a session are different and such as every provider takes', () => {
  expect(
    mcpToolNames([
      { server: 'a', tool: 'b__c' },
      { server: 'a__b', tool: 'c' },
      { server: 'a', tool: 'b__c' },
    ]),
  ).toEqual(['mcp__a__b__c', 'mcp__a__b__c_2', 'mcp__a__b__c_3']);
  const word = fc.oneof(fc.string({ maxLength: 60 }), fc.constantFrom('a', 'a__', '_', 'x'.repeat(70)));
  fc.assert(
    fc.property(fc.array(fc.record({ server: word, tool: word }), { maxLength: 30 }), (tools) => {
      const names = mcpToolNames(tools);
      expect(new Set(names).size).toBe(tools.length);
      for (const name of names) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{0,58}$/);
    }),
  );
});

test('[TL-2] what a server says is one printable line for a person', () => {
  expect(printable('\u001b[31mred\r\n\u0007bell', 100)).toBe('[31mred bell');
  expect(printable('x'.repeat(20), 10)).toBe(`${'x'.repeat(10)}…`);
});

test('[TL-2] lines come out as they went in, however the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[^\n]{1,20}$/)), fc.array(fc.nat(30)), (lines, cuts) => {
      const heard: string[] = [];
      const cutter = new LineCutter(1000, (line, isWhole) => heard.push(isWhole ? line : 'cut'));
      let rest = Buffer.from(lines.join('\n'));
      for (const cut of cuts) {
        cutter.push(rest.subarray(0, cut));
        rest = rest.subarray(cut);
      }
      cutter.push(rest);
      cutter.end();
      expect(heard).toEqual(lines.map((line) => Buffer.from(line).toString()));
    }),
  );
});

test('[TL-2] of a line that is too long the beginning is told at once, and the rest passed over', () => {
  const heard: [string, boolean][] = [];
  const cutter = new LineCutter(4, (line, isWhole) => heard.push([line, isWhole]));
  cutter.push(Buffer.from('1234\n12'));
  cutter.push(Buffer.from('345'));
  expect(heard).toEqual([
    ['1234', true],
    ['1234', false],
  ]);
  cutter.push(Buffer.from('678\nab\n'));
  expect(heard.slice(2)).toEqual([['ab', true]]);
});

test.each([
  ['an answer within', false, ['12345', '12345'], true],
  ['an answer beyond', false, ['12345', '123456'], false],
  ['events within', true, ['12345678\n\n', '1234567\r\n\r\n', '12345'], true],
  ['an event beyond', true, ['1234\n', '5678\n', '901'], false],
  ['an end cut in two', true, ['12345678\n', '\n12345678'], true],
])('[TL-2] %s the limit of ten bytes', async (_, perEvent, chunks, passes) => {
  const source = ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk)));
  const read = new Response(source.pipeThrough(limit(10, perEvent) as never)).text();
  if (passes) await expect(read).resolves.toBe(chunks.join(''));
  else await expect(read).rejects.toThrow('more than 10 bytes');
});
