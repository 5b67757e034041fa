import type { ErrorObject } from './errors.ts';

/** Checks a value off the wire and returns it typed; throws `RequestError` -32602 naming the path. */
export type Parser<T> = (value: unknown) => T;

/** A request as a value: what it is called, what its params and result are, and who checks them. */
export interface RequestMethod<P, R> {
  readonly name: string;
  /** Other names under which the same method is served. */
  readonly aliases: readonly string[];
  readonly params: Parser<P>;
  /** Checks what the peer answers; without it the answer is passed on as it came. */
  readonly result: Parser<R> | undefined;
}

export interface NotificationMethod<P> {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly params: Parser<P>;
}

export type RequestId = string | number;

export interface RequestMessage {
  readonly jsonrpc: '2.0';
  readonly id: RequestId;
  readonly method: string;
  readonly params?: unknown;
}

export interface NotificationMessage {
  readonly jsonrpc: '2.0';
  readonly method: string;
  readonly params?: unknown;
}

export interface ResponseMessage {
  readonly jsonrpc: '2.0';
  readonly id: RequestId | null;
  readonly result?: unknown;
  readonly error?: ErrorObject;
}

export type RpcMessage = RequestMessage | NotificationMessage | ResponseMessage;
