/** An event longer than this is not a model's; in UTF-16 code units. */
const LONGEST_EVENT = 64 * 1024 * 1024;

/**
 * The `data` of each server-sent event of a response's body, as many in one array as each read brought: a loop over an
 * array costs a fraction of an await an event. An event that the end of the body cuts off is given as it is. Throws what
 * reading the body throws, and `RangeError` for an event that never ends.
 */
export async function* readEventData(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  let rest = '';
  let data: string | undefined;
  const takeLines = (text: string): string[] => {
    const events: string[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const line = text.slice(start, text[end - 1] === '\r' ? end - 1 : end);
      start = end + 1;
      if (line === '' && data !== undefined) {
        events.push(data);
        data = undefined;
      } else if (line.startsWith('data:')) {
        const value = line.slice(line[5] === ' ' ? 6 : 5);
        data = data === undefined ? value : `${data}\n${value}`;
      }
    }
    rest = text.slice(start);
    return events;
  };
  for await (const bytes of body) {
    const events = takeLines(rest + decoder.decode(bytes, { stream: true }));
    if (events.length > 0) yield events;
    if (rest.length + (data?.length ?? 0) > LONGEST_EVENT) throw new RangeError('a server-sent event never ends');
  }
  const last = takeLines(`${rest}${decoder.decode()}\n\n`);
  if (last.length > 0) yield last;
}
