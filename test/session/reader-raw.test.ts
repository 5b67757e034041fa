import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readRawResult } from '../../src/acp/frames.ts';
import { readConversation } from '../../src/session/conversation.ts';
import { matchRawResult } from '../../src/session/raw-result.ts';
import { matchHead, newHead } from '../../src/session/record-bytes.ts';
import { NOTHING, replay, replayedUpdates, transcriptOf, Writer } from '../support/transcripts.ts';

const DISPLAY = {
  type: 'shell_result',
  code: 0,
  ratio: -1.5e3,
  ok: true,
  none: null,
  list: [[], {}, 'é'],
  text: 'a\tb',
};
const OUTPUT = 'quotes " and \\ and \n and \u2028 and 日本語 and 🙂 and \u0001, long enough to be scanned by words';

/** A call and its recorded result. */
const turn = () =>
  new Writer().calls('a1', ['x']).result('r1', 'x', OUTPUT, {
    toolCallResult: { callId: 'x', status: 'success', executionStatus: 'success', resultDisplay: DISPLAY },
  });

/** How many results are slices, and whether both ways show the same. */
async function check(text: string | Uint8Array, slices: number): Promise<void> {
  const conversation = await readConversation(await transcriptOf(text));
  let found = 0;
  for await (const event of replay(conversation, NOTHING)) if (event.kind === 'raw_result') found++;
  const parsed = await replayedUpdates(conversation, NOTHING, { rawResults: false });
  expect(await replayedUpdates(conversation, NOTHING)).toEqual(parsed);
  expect(found).toBe(slices);
}

describe('[TR-8, ACP-3] a result in the recorded form is copied, any other is read', () => {
  const fields = '"executionStatus":"success"';
  test.each<[string, number, (text: string) => string]>([
    ['as recorded', 1, (text) => text],
    ['without a display', 1, (text) => text.replace(/,"resultDisplay":.*(?=\}\}\n)/, '')],
    [
      'with a git branch',
      1,
      (text) => text.replaceAll('"version":"0.24.4"', '"version":"0.24.4","gitBranch":"é\\"/x"'),
    ],
    ['an error', 1, (text) => text.replace('"output"', '"error"').replace('"success"', '"error"')],
    ['a cancelled call', 1, (text) => text.replace('"output"', '"error"').replace('"success"', '"cancelled"')],
    ['an output that is no success', 1, (text) => text.replace('"status":"success"', '"status":"error"')],
    ['with more about the error', 1, (text) => text.replace(fields, `${fields},"error":{},"errorType":"x"`)],
    ['with two displays', 0, (text) => text.replace(fields, `${fields},"resultDisplay":1`)],
    ['with the status twice', 0, (text) => text.replace(fields, `${fields},"status":"error"`)],
    [
      'with a subtype',
      0,
      (text) => text.replace('"version":"0.24.4","message"', '"version":"0.24.4","subtype":"x","message"'),
    ],
    ['with another part', 0, (text) => text.replace('}}}]},"toolCallResult"', '}}},{"text":"y"}]},"toolCallResult"')],
    ['with another call id in its details', 0, (text) => text.replace('"callId":"x"', '"callId":"y"')],
    ['with an escaped call id', 0, (text) => text.replaceAll('"x"', '"\\u0078"')],
    [
      'with an output that is no text',
      0,
      (text) => text.replace(`"output":${JSON.stringify(OUTPUT)}`, '"output":{"a":1}'),
    ],
    ['with more in its response', 0, (text) => text.replace('"output"', '"extra":1,"output"')],
    [
      'an edit',
      0,
      (text) => text.replace('"type":"shell_result"', '"fileName":"a","originalContent":"b","newContent":"c"'),
    ],
    ['of an MCP tool', 0, (text) => text.replaceAll('"glob"', '"mcp__server__tool"')],
    ['of the plan', 0, (text) => text.replaceAll('"glob"', '"todo_write"')],
    [
      'with keys in another order',
      0,
      (text) =>
        text.replace(/"provenance":"tool_result",(.*),"message"/, '$1,"provenance":"tool_result","x":1,"message"'),
    ],
    ['with fields behind it', 0, (text) => text.replace(/\}\n$/, ',"more":1}\n')],
    ['with white space', 0, (text) => text.replace('"status":"success"', '"status": "success"')],
  ])('%s', async (title, slices, change) => {
    const text = change(turn().text());
    expect(text === turn().text()).toBe(title === 'as recorded');
    await check(text, slices);
  });

  test('bytes that are no UTF-8 are read, never copied', async () => {
    const bytes = Buffer.from(turn().text());
    bytes[bytes.indexOf('日')] = 0xff;
    await check(bytes, 0);
  });

  test('a result of 40 MiB loses its display, and its text its end, so that the line stays under 32 MiB', async () => {
    const long = 'x'.repeat(20 << 20);
    const text = new Writer().calls('a1', ['x']).result('r1', 'x', long).text();
    const [, update] = await replayedUpdates(await readConversation(await transcriptOf(text)));
    expect(update).not.toHaveProperty('rawOutput');
    expect(JSON.stringify(update).length).toBeLessThan(32 << 20);
    expect(JSON.stringify(update)).toContain('xxx\\n[cut');
  });
});

test('[TR-4, TR-8] whatever is taken for a recorded result is JSON that says the same', () => {
  const line = Buffer.from(turn().lines()[1]!);
  const head = newHead();
  let matched = 0;
  const wound = fc.record({
    at: fc.nat(line.length - 1),
    cut: fc.nat(3),
    insert: fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    piece: fc.option(
      fc.constantFrom('"', '\\', '\\u12', '\\q', '{', '}', '[', ']', ',', ':', '0', 'e', '-', 'null', '"a":1,'),
    ),
  });
  fc.assert(
    fc.property(fc.array(wound, { minLength: 1, maxLength: 2 }), (wounds) => {
      let bytes: Buffer = line;
      for (const { at, cut, insert, piece } of wounds) {
        const middle = piece === null ? insert : Buffer.from(piece);
        bytes = Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(at + cut)]);
      }
      if (bytes.includes(10) || !isUtf8(bytes) || !matchHead(bytes, 0, bytes.length, head)) return;
      const result = matchRawResult(bytes, head, bytes.length);
      if (!result) return;
      matched++;
      const record = JSON.parse(bytes.toString());
      const { id, name, response } = record.message.parts[0].functionResponse;
      expect(readRawResult(result)).toEqual({
        kind: 'result',
        callId: id,
        name,
        text: response.output ?? response.error,
        ok: response.error === undefined && record.toolCallResult.status === 'success',
        ...('resultDisplay' in record.toolCallResult ? { display: record.toolCallResult.resultDisplay } : {}),
        source: { recordId: record.uuid, timestamp: Date.parse(record.timestamp) || 0 },
      });
    }),
    { numRuns: 20_000 },
  );
  expect(matched).toBeGreaterThan(1_000);
});
