import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readBody, readEventData } from '../../src/model/sse.ts';

/** What is read of a body that comes in these pieces. */
async function read(pieces: Iterable<Uint8Array>): Promise<string[]> {
  const all: string[] = [];
  for await (const some of readEventData(ReadableStream.from(pieces) as ReadableStream<Uint8Array>)) all.push(...some);
  return all;
}

const BODY =
  'data: {"a":"é😀"}\n\n: a comment\r\ndata: 1\r\ndata: 2\r\n\r\nevent: x\nid: 7\ndata:none\r\rdata: cut off';

test('[MD-1] events are the same wherever the network cuts the body, within a character or a line end', async () => {
  const bytes = new TextEncoder().encode(BODY);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length)), async (cuts) => {
      const ends = [...cuts.sort((a, b) => a - b), bytes.length];
      const pieces = ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
      expect(await read(pieces)).toEqual(['{"a":"é😀"}', '1\n2', 'none', 'cut off']);
    }),
  );
});

test('[MD-1] an event that never ends is an error, not memory', async () => {
  const mebibyte = new TextEncoder().encode('x'.repeat(1024 * 1024));
  let given = 0;
  function* endless() {
    yield new TextEncoder().encode('data: ');
    for (; given < 100; given++) yield mebibyte;
  }
  await expect(read(endless())).rejects.toThrow(RangeError);
  expect(given).toBeLessThan(70);
});

test('[MD-1] a reply that never ends is an error, not memory', async () => {
  const event = new TextEncoder().encode(`data: ${'x'.repeat(1024 * 1024)}\n\n`);
  let given = 0;
  function* endless() {
    for (; given < 200; given++) yield event;
  }
  const body = () => ReadableStream.from(endless()) as ReadableStream<Uint8Array>;
  const drain = async () => {
    for await (const _ of readEventData(body()));
  };
  await expect(drain()).rejects.toThrow('never ends');
  expect(given).toBeLessThan(130);
  given = 0;
  await expect(readBody(body())).rejects.toThrow('never ends');
  expect(given).toBeLessThan(130);
});
