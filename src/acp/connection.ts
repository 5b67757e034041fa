import { setMaxListeners } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { CancellationToken } from 'vscode-jsonrpc/node';
import { CancellationTokenSource, createMessageConnection, ParameterStructures } from 'vscode-jsonrpc/node';
import type { Log } from '../log.ts';
import {
  DeadlineError,
  fromResponseError,
  HangUpError,
  isWriteFailure,
  RequestError,
  toResponseError,
} from './errors.ts';
import { MAX_INBOUND_LINE, MAX_OUTBOUND_LINE, NdjsonReader, NdjsonWriter, requestIdPrefix } from './ndjson.ts';
import { Outbox } from './outbox.ts';
import type { NotificationMethod, RequestMethod } from './rpc.ts';
import type { Handler } from './serving.ts';
import { Serving } from './serving.ts';

export interface RequestOptions {
  /** Stops the wait at once; the peer is told, and its late answer finds nobody. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the request is given up with a `DeadlineError`. */
  readonly deadlineMs?: number;
}

export interface ConnectionOptions {
  /** How long running handlers may take to stop after the end, in milliseconds. */
  readonly graceMs?: number;
  readonly maxInboundLineBytes?: number;
  readonly maxOutboundLineBytes?: number;
  /** What of a handler's own exceptions the peer may know; undefined for none of it. */
  readonly toRequestError?: (error: unknown) => RequestError | undefined;
}

export interface Connection {
  /** Also serves the method's aliases. */
  onRequest<P, R>(method: RequestMethod<P, R>, handler: NoInfer<Handler<P, R>>): void;
  /** `handler` runs in the order of arrival, before whatever the peer sent later. */
  onNotification<P>(method: NotificationMethod<P>, handler: (params: P) => void): void;
  /**
   * Rejects with `RequestError` for what the peer answered (-32603 for a result that does not parse), `HangUpError` when
   * the connection ends, `DeadlineError`, or the signal's reason.
   */
  request<P, R>(method: RequestMethod<P, R>, params: P, options?: RequestOptions): Promise<R>;
  /** Resolves when the transport can take more; rejects once the connection is closed. */
  notify<P>(method: NotificationMethod<P>, params: P): Promise<void>;
  /**
   * Sends whole messages that are JSON already, a line feed between them but none after the last, in order with
   * everything else. One over the limit is left out with a warning. The bytes must not be changed afterwards.
   */
  notifyRaw(lines: Uint8Array | string): Promise<void>;
  /** False while the peer has to read before it is sent more, and once the connection is closed. */
  readonly writable: boolean;
  /** Aborts when the connection begins to end, with a `HangUpError`. */
  readonly signal: AbortSignal;
  /** Resolves once running handlers have answered, or their time is up, and the output is flushed. */
  readonly closed: Promise<void>;
  listen(): void;
  /** Ends the output: the peer sees the end of its input. What it still says is read. */
  end(): void;
  /** Ends the connection as if the peer had closed it. */
  hangUp(reason: string): void;
}

const DEFAULT_GRACE_MS = 1500;

export function createConnection(
  input: Readable,
  output: Writable,
  log: Log,
  options: ConnectionOptions = {},
): Connection {
  return new RpcConnection(input, output, log, options);
}

class RpcConnection implements Connection {
  readonly closed: Promise<void>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #log: Log;
  readonly #options: ConnectionOptions;
  readonly #reader: NdjsonReader;
  readonly #outbox: Outbox;
  readonly #writer: NdjsonWriter;
  readonly #rpc: ReturnType<typeof createMessageConnection>;
  readonly #hangUp = new AbortController();
  readonly #serving: Serving;
  /** How each outbound request that still waits is given up. */
  readonly #waiting = new Set<(reason: Error) => void>();

  constructor(input: Readable, output: Writable, log: Log, options: ConnectionOptions) {
    this.#input = input;
    this.#output = output;
    this.#log = log;
    // Whoever waits for the end listens, as many as there are sessions.
    setMaxListeners(0, this.#hangUp.signal);
    this.#options = options;
    this.#serving = new Serving(log, options.toRequestError ?? (() => undefined));
    const prefix = requestIdPrefix();
    this.#outbox = new Outbox(output, (reason) => this.#end(reason));
    this.#writer = new NdjsonWriter(this.#outbox, {
      prefix,
      maxLineBytes: options.maxOutboundLineBytes ?? MAX_OUTBOUND_LINE,
      log,
      onResult: (result) => this.#serving.responded(result),
    });
    this.#reader = new NdjsonReader(input, {
      prefix,
      maxLineBytes: options.maxInboundLineBytes ?? MAX_INBOUND_LINE,
      log,
      notify: (method, params) => this.#serving.receive(method, params),
      refuse: (error) => this.#refuse(error),
      outbox: this.#outbox,
    });
    const debug = (message: string) => log.debug(message);
    this.#rpc = createMessageConnection(this.#reader, this.#writer, {
      error: debug,
      warn: debug,
      info: debug,
      log: debug,
    });
    // The handler for everything gets the params untouched; others would spread arrays and refuse by their own rules.
    this.#rpc.onRequest((method, params, token) => this.#serve(method, params, token));
    this.closed = this.#close();
  }

  get writable(): boolean {
    return this.#outbox.writable;
  }

  get signal(): AbortSignal {
    return this.#hangUp.signal;
  }

  onRequest<P, R>(method: RequestMethod<P, R>, handler: NoInfer<Handler<P, R>>): void {
    this.#serving.onRequest(method, handler);
  }

  onNotification<P>(method: NotificationMethod<P>, handler: (params: P) => void): void {
    this.#serving.onNotification(method, handler);
  }

  async request<P, R>(method: RequestMethod<P, R>, params: P, options: RequestOptions = {}): Promise<R> {
    this.signal.throwIfAborted();
    options.signal?.throwIfAborted();
    const result = await this.#ask(method.name, params, options);
    return parsedResult(method, result);
  }

  async notify<P>(method: NotificationMethod<P>, params: P): Promise<void> {
    const message = { jsonrpc: '2.0', method: method.name, params };
    await this.#writer.write(message);
  }

  notifyRaw(lines: Uint8Array | string): Promise<void> {
    return this.#writer.writeRaw(lines);
  }

  listen(): void {
    this.#rpc.listen();
  }

  end(): void {
    this.#writer.end();
  }

  hangUp(reason: string): void {
    this.#end(new HangUpError('local', reason));
  }

  #ask(method: string, params: unknown, { signal, deadlineMs }: RequestOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const source = new CancellationTokenSource();
      const giveUp = (reason: unknown): void => {
        forget();
        reject(reason);
        source.cancel();
      };
      const onAbort = () => giveUp(signal?.reason);
      const timer =
        deadlineMs === undefined
          ? undefined
          : setTimeout(() => giveUp(new DeadlineError(method, deadlineMs)), deadlineMs);
      const forget = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(giveUp);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(giveUp);
      this.#rpc.sendRequest(method, ParameterStructures.byName, params, source.token).then(
        (result) => {
          forget();
          resolve(result);
        },
        (error: unknown) => {
          forget();
          reject(this.#failure(error));
        },
      );
    });
  }

  /** vscode-jsonrpc's own error for a request that could not go out hides that this end was closed. */
  #failure(error: unknown): unknown {
    return (isWriteFailure(error) && this.#outbox.closed) || fromResponseError(error);
  }

  async #serve(name: string, params: unknown, token: CancellationToken): Promise<unknown> {
    try {
      return await this.#serving.serve(name, params, (cancel) => {
        token.onCancellationRequested(cancel);
      });
    } catch (error) {
      throw error instanceof RequestError ? toResponseError(error) : error;
    }
  }

  #refuse(error: RequestError): void {
    // A broken output ends the connection elsewhere.
    this.#writer.write({ jsonrpc: '2.0', id: null, error: error.toErrorObject() } as never).catch(() => {});
  }

  #end(reason: HangUpError): void {
    if (this.signal.aborted) return;
    this.#hangUp.abort(reason);
    this.#serving.abort(reason);
    for (const giveUp of this.#waiting) giveUp(reason);
  }

  async #close(): Promise<void> {
    await Promise.race([this.#reader.ended.then((error) => this.#end(endOfInput(error))), onceAborted(this.signal)]);
    const settled = await within(this.#options.graceMs ?? DEFAULT_GRACE_MS, this.#settle());
    if (!settled) this.#log.warn('the connection was closed before everything had been answered and sent');
    this.#outbox.close(this.signal.reason as HangUpError);
    this.#rpc.dispose();
    // A peer may close one pipe and keep the other, or never read again; the process must still be able to exit.
    this.#input.destroy();
    if (!settled) this.#output.destroy();
  }

  async #settle(): Promise<void> {
    await this.#serving.idle();
    // vscode-jsonrpc writes a response some promise callbacks after its handler's end.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#outbox.flushed();
  }
}

function parsedResult<P, R>(method: RequestMethod<P, R>, result: unknown): R {
  if (!method.result) return result as R;
  try {
    return method.result(result);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw RequestError.internalError(`Malformed result of ${method.name}`, error.data);
  }
}

function endOfInput(error: Error | undefined): HangUpError {
  return error
    ? new HangUpError('transport', 'the input broke', { cause: error })
    : new HangUpError('eof', 'the peer closed the connection');
}

/** Whether `work` was done in time. */
async function within(milliseconds: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([work.then(() => true), expired]);
  } finally {
    clearTimeout(timer);
  }
}

function onceAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
