import { PassThrough } from 'node:stream';
import type { Connection, ConnectionOptions } from '../../src/acp/connection.ts';
import { createConnection } from '../../src/acp/connection.ts';
import type { Log } from '../../src/log.ts';

export type Frame = Record<string, unknown>;

export interface RawPeer {
  readonly connection: Connection;
  /** What the connection logged, `level: message`. */
  readonly logged: string[];
  readonly toConnection: PassThrough;
  readonly fromConnection: PassThrough;
  /** Sends frames, or text as it is, each as one line, all in one chunk. */
  send(...lines: readonly (Frame | string)[]): void;
  /** The next frame from the connection. */
  next(): Promise<Frame>;
  /** Every frame until the connection ends its output, those taken by `next` left out. */
  rest(): Promise<readonly Frame[]>;
}

/** The other end of a connection, speaking bytes; `prepare` registers handlers before the connection listens. */
export function rawPeer(
  prepare: (connection: Connection) => void = () => {},
  options: ConnectionOptions = {},
): RawPeer {
  const toConnection = new PassThrough();
  const fromConnection = new PassThrough();
  const logged: string[] = [];
  const connection = createConnection(toConnection, fromConnection, logTo(logged), options);
  prepare(connection);
  connection.listen();
  const frames = framesOf(fromConnection);
  return {
    connection,
    logged,
    toConnection,
    fromConnection,
    send: (...lines) => {
      toConnection.write(lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
    },
    next: async () => {
      const { value, done } = await frames.next();
      if (done) throw new Error('the connection ended its output');
      return value;
    },
    rest: async () => {
      const rest: Frame[] = [];
      for await (const frame of frames) rest.push(frame);
      return rest;
    },
  };
}

export const call = (id: unknown, method: string, params: unknown = {}): Frame => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

export function logTo(logged: string[]): Log {
  const at = (level: string) => (message: string) => void logged.push(`${level}: ${message}`);
  return { debug: () => {}, info: at('info'), warn: at('warn'), error: at('error') };
}

async function* framesOf(stream: PassThrough): AsyncGenerator<Frame> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield JSON.parse(line) as Frame;
  }
  if (rest !== '') throw new Error('the last line has no newline');
}

/** Two ends of a pair of pipes. */
export function linked() {
  const there = new PassThrough();
  const back = new PassThrough();
  return { left: { input: back, output: there }, right: { input: there, output: back } };
}
