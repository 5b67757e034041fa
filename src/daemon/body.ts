import type { HttpContext } from './request.ts';
import { DaemonError } from './ports.ts';

/** The longest body, in bytes. */
export const MAX_BODY_BYTES = 10 * 1024 * 1024;

/**
 * The JSON value of a request's body; an empty object where it has none. Throws `DaemonError`: 415 for a body that does
 * not say that it is JSON, 413 for one that is too long, 400 for one that is not JSON.
 */
export async function readJsonBody(c: HttpContext): Promise<unknown> {
  const length = c.req.header('content-length');
  if (Number(length) > MAX_BODY_BYTES) throw tooLong();
  const bytes = await readBytes(c);
  if (bytes.length === 0) return {};
  const type = c.req.header('content-type') ?? '';
  // A page of another origin can send text or a form without being asked, JSON it cannot.
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type)) {
    throw new DaemonError(415, 'The body must be JSON, and its Content-Type must say so: application/json', {
      code: 'unsupported_media_type',
    });
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    // The parser's own message quotes the body.
    throw new DaemonError(400, 'The body is not valid JSON');
  }
}

async function readBytes(c: HttpContext): Promise<Uint8Array> {
  // Leaving the loop must not destroy the socket: the answer goes out on it.
  const incoming = c.env?.incoming?.iterator({ destroyOnReturn: false });
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of incoming ?? c.req.raw.body ?? []) {
    total += chunk.length;
    if (total > MAX_BODY_BYTES) throw tooLong();
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
}

function tooLong(): DaemonError {
  return new DaemonError(413, `The body is longer than ${MAX_BODY_BYTES} bytes`, {
    code: 'body_too_large',
    details: { maxBytes: MAX_BODY_BYTES },
  });
}
