import { type IncomingMessage, request as httpRequest } from 'node:http';
import { Unmet } from './verdicts.ts';
import { type Json, parse } from './wire.ts';

/** A request as it is sent. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it stands, with the headers alone saying what it is. */
  readonly raw?: string;
}

/** What came of a request; as evidence, both in one line. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Parsed; undefined where it is no JSON. */
  readonly body: Json;
  readonly text: string;
}

/** A daemon that answers with more is broken, and would fill the kit's memory. */
const MOST_BYTES = 64 * 1024 * 1024;
const SHOWN = 2_000;

/** Sends a request on a connection of its own. Throws `Unmet` where no whole answer comes within `patience` ms. */
export async function call(url: string, sent: Call, patience: number): Promise<Answer> {
  const body = sent.raw ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body));
  const headers = {
    ...(sent.body !== undefined && { 'content-type': 'application/json' }),
    ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
    ...sent.headers,
  };
  const line = `${sent.method} ${sent.path}${body === undefined ? '' : ` ${body.slice(0, SHOWN)}`}`;
  const signal = AbortSignal.timeout(patience);
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = httpRequest(`${url}${sent.path}`, { method: sent.method, headers, agent: false, signal });
      outgoing.once('response', resolve);
      // A daemon may answer before it has read a body that is too long, and hang up.
      outgoing.on('error', reject).end(body);
    });
    const text = await textOf(response);
    const status = response.statusCode ?? 0;
    const seen = { text: `${line} -> ${status} ${text.slice(0, SHOWN)}` };
    return { ...seen, status, headers: flat(response.headers), body: parse(text) };
  } catch (error) {
    const why = signal.aborted ? `did not come within ${patience / 1000} s` : `did not come: ${String(error)}`;
    throw new Unmet(`the answer to ${sent.method} ${sent.path} ${why}`, { text: line });
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response) {
    length += piece.length;
    if (length > MOST_BYTES) throw new RangeError('it is too long');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

const flat = (headers: IncomingMessage['headers']): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()]));
