import { createParser } from 'eventsource-parser';

/** An event longer than this is not a model's; in UTF-16 code units. */
const LONGEST_EVENT = 64 * 1024 * 1024;
/** A body longer than this is no reply: each few characters of one come in an event of some hundred. Bytes. */
const LONGEST_BODY = 128 * 1024 * 1024;

/**
 * The `data` of each server-sent event of a response's body, as many in one array as each read brought: a loop over an
 * array costs a fraction of an await an event. An event that the end of the body cuts off is given as it is. Throws what
 * reading the body throws, and `RangeError` for an event or a body that never ends.
 */
export async function* readEventData(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  let events: string[] = [];
  const parser = createParser({
    maxBufferSize: LONGEST_EVENT,
    onEvent: ({ data }) => events.push(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw new RangeError('a server-sent event never ends');
    },
  });
  const take = (text: string): readonly string[] => {
    events = [];
    parser.feed(text);
    return events;
  };
  let length = 0;
  for await (const bytes of body) {
    length = counted(length, bytes);
    const some = take(decoder.decode(bytes, { stream: true }));
    if (some.length > 0) yield some;
  }
  const last = take(`${decoder.decode()}\n\n`);
  if (last.length > 0) yield last;
}

/** The text of a body that is one document. Throws as `readEventData` does. */
export async function readBody(body: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    length = counted(length, bytes);
    chunks.push(bytes);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

function counted(length: number, bytes: Uint8Array): number {
  const sum = length + bytes.length;
  if (sum > LONGEST_BODY) throw new RangeError('the reply never ends');
  return sum;
}
