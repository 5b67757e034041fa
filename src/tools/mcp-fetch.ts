import type { FetchLike } from '@modelcontextprotocol/client';

/** Of one answer or one event of a stream, in bytes. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;
const [NEWLINE, RETURN] = [0x0a, 0x0d];

/** `fetch` for the official client, which would keep an endless answer in memory; here it becomes an error. */
export const boundedFetch: FetchLike = async (url, init) => {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const body = response.body.pipeThrough(limit(MAX_MESSAGE_BYTES, isStream));
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
};

/** Passes everything on but fails after `max` bytes; where `perEvent`, after so many without an empty line. */
export function limit(max: number, perEvent: boolean): TransformStream<Uint8Array, Uint8Array> {
  let count = 0;
  let atLineStart = false;
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of perEvent ? chunk : []) {
        count = byte === NEWLINE && atLineStart ? 0 : count + 1;
        if (byte !== RETURN) atLineStart = byte === NEWLINE;
      }
      if (!perEvent) count += chunk.length;
      if (count > max) controller.error(new Error(`the server sent a message of more than ${max} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
