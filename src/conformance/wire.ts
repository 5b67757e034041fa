import type { Readable } from 'node:stream';

/** A JSON value of a peer that may send anything. */
// biome-ignore lint/suspicious/noExplicitAny: a check looks at frames of every form, also at what they should not have
export type Json = any;

/** One line on a pipe. */
export interface Frame {
  /** Seen from the kit. */
  readonly dir: 'in' | 'out';
  /** The line without its newline. */
  readonly text: string;
  /** Parsed; undefined where it is no JSON. */
  readonly value: Json;
  /** When it passed, in ms of `performance.now()`. */
  readonly at: number;
}

/** An agent that writes a longer line is broken, and would fill the kit's memory. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** Reads the lines of a stream, byte by byte as far as UTF-8 goes; `onEnd` is told of a last line without its newline. */
export function readLines(stream: Readable, onLine: (line: string) => void, onEnd: (rest: string) => void): void {
  let pieces: Buffer[] = [];
  let length = 0;
  const take = (): string => {
    const line = Buffer.concat(pieces).toString('utf8');
    pieces = [];
    length = 0;
    return line;
  };
  stream.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at));
      onLine(take());
      from = at + 1;
    }
    const rest = chunk.subarray(from);
    length += rest.length;
    if (length > LONGEST_LINE) stream.destroy();
    else if (rest.length > 0) pieces.push(rest);
  });
  stream.once('close', () => onEnd(take()));
}

/** The value of a line; undefined where it is no JSON. */
export function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isObject = (value: unknown): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const isRequest = ({ dir, value }: Frame): boolean =>
  dir === 'in' && isObject(value) && typeof value['method'] === 'string' && 'id' in value;
export const isNotification = ({ dir, value }: Frame): boolean =>
  dir === 'in' && isObject(value) && typeof value['method'] === 'string' && !('id' in value);
export const isReply = ({ dir, value }: Frame): boolean => dir === 'in' && isObject(value) && !('method' in value);
