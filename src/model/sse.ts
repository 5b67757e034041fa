import { createParser } from 'eventsource-parser';

/** An event longer than this is not a model's; in UTF-16 code units. */
const LONGEST_EVENT = 64 * 1024 * 1024;

/**
 * The `data` of each server-sent event of a response's body, as many in one array as each read brought: a loop over an
 * array costs a fraction of an await an event. An event that the end of the body cuts off is given as it is. Throws what
 * reading the body throws, and `RangeError` for an event that never ends.
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
  for await (const bytes of body) {
    const some = take(decoder.decode(bytes, { stream: true }));
    if (some.length > 0) yield some;
  }
  const last = take(`${decoder.decode()}\n\n`);
  if (last.length > 0) yield last;
}
