import type { Log } from '../log.ts';
import { HangUpError, RequestError } from './errors.ts';
import type { NotificationMethod, RequestMethod } from './rpc.ts';

/**
 * Registers what is to be done right after the response was put on the wire, before anything that is sent later; also when
 * the result turned out to be no line that could be sent, and an error went in its place. Not when the handler fails.
 */
export type AfterResponse = (action: () => void) => void;

/**
 * Answers one request. `signal` aborts when the peer cancels it (reason: `RequestError` -32800) or the connection ends
 * (reason: `HangUpError`). A thrown `RequestError` goes to the peer as it is, anything else as "Internal error".
 */
export type Handler<P, R> = (params: P, signal: AbortSignal, afterResponse: AfterResponse) => R | Promise<R>;

interface Served {
  readonly method: RequestMethod<unknown, unknown>;
  readonly handler: Handler<unknown, unknown>;
}

/** The peer's calls: who handles them, what of it is running, and what the peer may know when it fails. */
export class Serving {
  readonly #log: Log;
  readonly #toRequestError: (error: unknown) => RequestError | undefined;
  readonly #requests = new Map<string, Served>();
  readonly #notifications = new Map<string, (params: unknown) => void>();
  readonly #running = new Map<AbortController, Promise<unknown>>();
  readonly #afterResult = new WeakMap<object, readonly (() => void)[]>();
  #aborted: Error | undefined;

  constructor(log: Log, toRequestError: (error: unknown) => RequestError | undefined) {
    this.#log = log;
    this.#toRequestError = toRequestError;
  }

  onRequest<P, R>(method: RequestMethod<P, R>, handler: Handler<P, R>): void {
    const served = { method, handler: handler as Handler<unknown, unknown> };
    for (const name of [method.name, ...method.aliases]) this.#requests.set(name, served);
  }

  onNotification<P>(method: NotificationMethod<P>, handler: (params: P) => void): void {
    for (const name of [method.name, ...method.aliases]) {
      this.#notifications.set(name, (params) => handler(method.params(params)));
    }
  }

  /** The result of a request; throws nothing but `RequestError`. `onCancel` registers what the peer's cancelling does. */
  async serve(name: string, params: unknown, onCancel: (cancel: () => void) => void): Promise<unknown> {
    const served = this.#requests.get(name);
    if (!served) throw RequestError.methodNotFound(name);
    const abort = new AbortController();
    if (this.#aborted) abort.abort(this.#aborted);
    onCancel(() => abort.abort(RequestError.requestCancelled()));
    const answer = this.#answer(served, params, abort.signal);
    this.#running.set(abort, answer);
    try {
      return await answer;
    } catch (error) {
      throw this.#refusal(name, error, abort.signal);
    } finally {
      this.#running.delete(abort);
    }
  }

  /** Handles a notification; what goes wrong is logged, as there is nobody to tell. */
  receive(name: string, params: unknown): void {
    const handle = this.#notifications.get(name);
    if (!handle) this.#log.debug(`ignored the notification ${name}`);
    try {
      handle?.(params);
    } catch (error) {
      this.#log.warn(`the notification ${name} was not handled`, error);
    }
  }

  /** Does what was to follow the response that bears this result. */
  responded(result: unknown): void {
    const actions = typeof result === 'object' && result !== null ? this.#afterResult.get(result) : undefined;
    for (const action of actions ?? []) {
      try {
        action();
      } catch (error) {
        this.#log.error('what was to follow a response failed', error);
      }
    }
  }

  /** Aborts every running handler, and each that starts later. */
  abort(reason: Error): void {
    this.#aborted = reason;
    for (const abort of this.#running.keys()) abort.abort(reason);
  }

  /** Resolves when no handler runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values());
  }

  async #answer({ method, handler }: Served, params: unknown, signal: AbortSignal): Promise<unknown> {
    const actions: (() => void)[] = [];
    const result = await handler(method.params(params), signal, (action) => actions.push(action));
    if (actions.length === 0) return result;
    // A copy, as a handler may give the same object to two requests.
    const own = { ...(result as object) };
    this.#afterResult.set(own, actions);
    return own;
  }

  #refusal(name: string, error: unknown, signal: AbortSignal): RequestError {
    if (error instanceof RequestError) return error;
    const known = this.#toRequestError(error);
    if (known) return known;
    if (signal.aborted && isConsequence(error, signal.reason)) return RequestError.requestCancelled();
    this.#log.error(`${name} failed`, error);
    return RequestError.internalError();
  }
}

/** Whether an error only says that the handler was aborted, or that the peer it was writing to is gone. */
function isConsequence(error: unknown, reason: unknown): boolean {
  return error === reason || error instanceof HangUpError || (error instanceof Error && error.name === 'AbortError');
}
