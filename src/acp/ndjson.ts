import type { Readable } from 'node:stream';
import type { DataCallback, Message } from 'vscode-jsonrpc/node';
import { AbstractMessageReader, AbstractMessageWriter, Disposable } from 'vscode-jsonrpc/node';
import type { Log } from '../log.ts';
import { decodeMessage, encodeMessage } from './envelope.ts';
import { HangUpError, RequestError } from './errors.ts';
import { LineSplitter } from './lines.ts';
import type { Outbox } from './outbox.ts';
import type { ResponseMessage, RpcMessage } from './rpc.ts';

export const MAX_INBOUND_LINE = 64 * 1024 * 1024;
export const MAX_OUTBOUND_LINE = 32 * 1024 * 1024;

/** With more than this unread by the peer, in bytes, nothing more is read from it: its own requests made the answers. */
const MAX_BACKLOG = 64 * 1024 * 1024;

/**
 * A prefix for the ids of one connection's requests, so that no two processes ever use the same. It guards against
 * mistakes, not against attacks, and is made without `node:crypto`, which takes a tenth of the time to start.
 */
export const requestIdPrefix = (): string => `q${Date.now().toString(36)}${Math.random().toString(36).slice(2)}-`;

export interface NdjsonReaderOptions {
  readonly prefix: string;
  readonly maxLineBytes: number;
  readonly log: Log;
  /** Handles a notification, in order. */
  readonly notify: (method: string, params: unknown) => void;
  /** Answers what is no message, in order. */
  readonly refuse: (error: RequestError) => void;
  /** Nothing more is read while the peer leaves too much unread. */
  readonly outbox: Outbox;
}

/** Hands vscode-jsonrpc the requests and responses of a line-delimited stream, one per turn of the event loop. */
export class NdjsonReader extends AbstractMessageReader {
  /** Resolves after the last message was handed over, with the stream's error if it broke; unlike onClose it leaves the connection open. */
  readonly ended: Promise<Error | undefined>;
  readonly #input: Readable;
  readonly #options: NdjsonReaderOptions;
  readonly #lines: LineSplitter;
  readonly #chunks: Buffer[] = [];
  #deliver: DataCallback = () => {};
  #resolveEnded: (error: Error | undefined) => void = () => {};
  #state: 'idle' | 'busy' | 'finished' = 'idle';
  #inputEnded = false;
  #error: Error | undefined;

  constructor(input: Readable, options: NdjsonReaderOptions) {
    super();
    this.#input = input;
    this.#options = options;
    this.#lines = new LineSplitter(options.maxLineBytes);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  listen(callback: DataCallback): Disposable {
    this.#deliver = callback;
    this.#input.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onEnd).on('error', this.#onError);
    // A stream that was over before anyone listened tells nobody.
    if (this.#input.destroyed || this.#input.readableEnded) this.#onEnd();
    return Disposable.create(() => this.dispose());
  }

  override dispose(): void {
    super.dispose();
    this.#state = 'finished';
    this.#chunks.length = 0;
    this.#input.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onEnd);
    this.#resolveEnded(this.#error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    if (this.#state === 'idle') this.#pump();
    if (this.#state === 'busy') this.#input.pause();
  };

  readonly #onEnd = (): void => {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    if (this.#state === 'idle') this.#pump();
  };

  // It stays attached after dispose: a stream's late error without a listener would end the process.
  readonly #onError = (error: Error): void => {
    this.#error ??= error;
  };

  /** Runs until a message was handed over or the bytes are used up. */
  #pump(): void {
    this.#state = 'idle';
    for (;;) {
      if (this.#options.outbox.backlog > MAX_BACKLOG) {
        this.#continueAfter(this.#options.outbox.ready());
        return;
      }
      const line = this.#nextLine();
      if (line === undefined) break;
      if (this.#handle(line)) {
        this.#continueNextTurn();
        return;
      }
    }
    if (this.#inputEnded) this.#resolveEnded(this.#error);
    else if (this.#input.isPaused()) this.#input.resume();
  }

  #nextLine(): string | RequestError | undefined {
    for (;;) {
      const line = this.#lines.next();
      if (line) return line.kind === 'text' ? line.text : this.#tooLong();
      const chunk = this.#chunks.shift();
      if (chunk) this.#lines.push(chunk);
      else break;
    }
    const last = this.#inputEnded ? this.#lines.end() : undefined;
    return last?.kind === 'too_long' ? this.#tooLong() : last?.text;
  }

  /** True when a message was handed over. */
  #handle(line: string | RequestError): boolean {
    if (typeof line !== 'string') {
      this.#options.refuse(line);
      return false;
    }
    const decoded = decodeMessage(line, this.#options.prefix);
    switch (decoded.kind) {
      case 'message':
        this.#deliver(decoded.message as Message);
        return true;
      case 'notification':
        // There is nothing to correlate: handled here it keeps its place and costs no turn, which a burst of updates
        // would feel.
        this.#options.notify(decoded.method, decoded.params);
        return false;
      case 'refused':
        this.#options.refuse(decoded.error);
        return false;
      case 'ignored':
        return false;
    }
  }

  // vscode-jsonrpc keys its queue by the id as text and takes one message off it per turn: with one in it at a time,
  // ids 1 and "1" never meet there, and the end is reported after the last dispatch.
  #continueNextTurn(): void {
    this.#state = 'busy';
    setImmediate(this.#continue);
  }

  #continueAfter(gate: Promise<void>): void {
    this.#state = 'busy';
    void gate.then(this.#continue, this.#continue);
  }

  readonly #continue = (): void => {
    if (this.#state !== 'finished') this.#pump();
  };

  #tooLong(): RequestError {
    const { log, maxLineBytes } = this.#options;
    // Its id went with it: the peer cannot tell which of its requests was refused.
    log.warn(`a line longer than ${maxLineBytes} bytes was not read`);
    return RequestError.invalidRequest(`the line is longer than ${maxLineBytes} bytes`);
  }
}

export interface NdjsonWriterOptions {
  readonly prefix: string;
  readonly maxLineBytes: number;
  readonly log: Log;
  /** Called with the result of a response right after its line was taken, or that of the error sent in its place. */
  readonly onResult: (result: unknown) => void;
}

/** Writes one JSON message a line; the order of calls is the order on the wire. */
export class NdjsonWriter extends AbstractMessageWriter {
  readonly #outbox: Outbox;
  readonly #options: NdjsonWriterOptions;

  constructor(outbox: Outbox, options: NdjsonWriterOptions) {
    super();
    this.#outbox = outbox;
    this.#options = options;
  }

  /** Resolves when the stream can take more; rejects once it is closed or broken. */
  write(message: Message): Promise<void> {
    const { line, result } = this.#encode(message as RpcMessage);
    if (line === undefined) return this.#outbox.ready();
    const written = this.#outbox.push(line);
    if (result !== undefined) this.#options.onResult(result);
    return written;
  }

  /** Writes whole messages that are JSON already, a line feed between them but none after the last. */
  writeRaw(lines: string | Uint8Array): Promise<void> {
    if (!this.#isTooLong(lines)) return this.#outbox.push(...terminated(lines));
    // All at once, as what is written next must not come between them.
    let written = this.#outbox.ready();
    for (const line of linesOf(lines)) written = this.#writeRawLine(line);
    return written;
  }

  #writeRawLine(line: Uint8Array): Promise<void> {
    if (!this.#isTooLong(line)) return this.#outbox.push(...terminated(line));
    this.#warnOversized('an encoded message');
    return this.#outbox.ready();
  }

  end(): void {
    this.#outbox.close(new HangUpError('local', 'this end of the connection was closed'));
  }

  #encode(message: RpcMessage): { readonly line?: string; readonly result?: unknown } {
    const line = this.#stringify(message);
    const result = 'result' in message ? { result: message.result } : {};
    if (line !== undefined && !this.#isTooLong(line)) return { line: `${line}\n`, ...result };
    if (!('method' in message)) return { line: `${this.#refusedResponse(message, line !== undefined)}\n`, ...result };
    if ('id' in message) throw new RangeError(`${message.method} ${this.#sizeFault()}`);
    this.#warnOversized(message.method);
    return {};
  }

  /** Undefined for a response that is no JSON value; another message of that kind is a fault of its sender. */
  #stringify(message: RpcMessage): string | undefined {
    try {
      return JSON.stringify(encodeMessage(message, this.#options.prefix));
    } catch (error) {
      if ('method' in message) throw error;
      this.#options.log.error('a result could not be encoded', error);
      return undefined;
    }
  }

  #refusedResponse({ id }: ResponseMessage, oversized: boolean): string {
    const { maxLineBytes } = this.#options;
    if (oversized) this.#warnOversized('a result');
    const error = oversized
      ? RequestError.internalError(`The result ${this.#sizeFault()}`, { maxBytes: maxLineBytes })
      : RequestError.internalError();
    return JSON.stringify({ jsonrpc: '2.0', id, error: error.toErrorObject() });
  }

  #warnOversized(what: string): void {
    this.#options.log.warn(`${what} ${this.#sizeFault()} and was not sent`);
  }

  #sizeFault(): string {
    return `is over the limit of ${this.#options.maxLineBytes} bytes a line`;
  }

  #isTooLong(line: string | Uint8Array): boolean {
    const { maxLineBytes } = this.#options;
    if (typeof line !== 'string') return line.byteLength > maxLineBytes;
    // A UTF-16 unit is at most three bytes of UTF-8: most lines need not be measured.
    return line.length * 3 > maxLineBytes && Buffer.byteLength(line) > maxLineBytes;
  }
}

/** A string is copied in any case: the line feed costs nothing more there. */
function terminated(lines: string | Uint8Array): readonly (string | Uint8Array)[] {
  return typeof lines === 'string' ? [`${lines}\n`] : [lines, '\n'];
}

function* linesOf(lines: string | Uint8Array): Generator<Uint8Array> {
  const bytes = typeof lines === 'string' ? Buffer.from(lines) : lines;
  for (let start = 0; start <= bytes.length; ) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    yield bytes.subarray(start, end);
    start = end + 1;
  }
}
