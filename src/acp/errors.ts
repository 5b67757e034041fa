import { ResponseError } from 'vscode-jsonrpc/node';

/** JSON-RPC's and ACP's error codes, and -32021, the reference's own. */
export const ERROR_CODE = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  requestCancelled: -32800,
  authRequired: -32000,
  resourceNotFound: -32002,
  transcriptChanged: -32021,
} as const;

/** One fault in a message's params or result. `path` is a JSON Pointer, empty for the whole value. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}

/** The `error` member of a JSON-RPC response. */
export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** An error that the peer may see, exactly as it stands here; everything else goes out as a bare "Internal error". */
export class RequestError extends Error {
  // By name: each bundle of dist/ has a copy of this class, and what one throws must be known in another.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof Error && value.name === 'RequestError';
  }

  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RequestError';
    this.code = code;
    this.data = data;
  }

  static parseError(): RequestError {
    return new RequestError(ERROR_CODE.parseError, 'Parse error');
  }

  static invalidRequest(why: string): RequestError {
    return new RequestError(ERROR_CODE.invalidRequest, `Invalid request: ${why}`);
  }

  static methodNotFound(method: string): RequestError {
    return new RequestError(ERROR_CODE.methodNotFound, `Method not found: ${method}`, { method });
  }

  /** `issues` names each fault's path; the message repeats the first. */
  static invalidParams(issues: readonly [Issue, ...Issue[]]): RequestError {
    const [{ path, message }] = issues;
    return new RequestError(
      ERROR_CODE.invalidParams,
      `Invalid params: ${path === '' ? message : `${path} ${message}`}`,
      { issues },
    );
  }

  static internalError(message = 'Internal error', data?: unknown): RequestError {
    return new RequestError(ERROR_CODE.internalError, message, data);
  }

  static authRequired(message: string): RequestError {
    return new RequestError(ERROR_CODE.authRequired, message);
  }

  static sessionNotFound(sessionId: string): RequestError {
    const uri = `session:${sessionId}`;
    return new RequestError(ERROR_CODE.resourceNotFound, `Resource not found: ${uri}`, { uri, sessionId });
  }

  static transcriptChanged(message: string): RequestError {
    return new RequestError(ERROR_CODE.transcriptChanged, message, { code: 'session_transcript_changed' });
  }

  static requestCancelled(): RequestError {
    return new RequestError(ERROR_CODE.requestCancelled, 'Request cancelled');
  }

  toErrorObject(): ErrorObject {
    const { code, message, data } = this;
    return data === undefined ? { code, message } : { code, message, data };
  }
}

/** Why a connection ended; the reason of every handler's signal and the rejection of what still waited for the peer. */
export class HangUpError extends Error {
  /** `eof`: the peer closed its end. `transport`: a pipe broke. `local`: this process hung up. */
  readonly kind: 'eof' | 'transport' | 'local';

  constructor(kind: HangUpError['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'HangUpError';
    this.kind = kind;
  }
}

/** The peer did not answer within the deadline of a request. */
export class DeadlineError extends Error {
  constructor(method: string, deadlineMs: number) {
    super(`${method} was not answered within ${deadlineMs} ms`);
    this.name = 'DeadlineError';
  }
}

export function toResponseError(error: RequestError): ResponseError<unknown> {
  return new ResponseError(error.code, error.message, error.data);
}

/** vscode-jsonrpc's own code for a request that it could not write; no peer has sent it. */
const WRITE_FAILED = -32099;

export function isWriteFailure(error: unknown): boolean {
  return error instanceof ResponseError && error.code === WRITE_FAILED;
}

/** What the peer answered, as our own class; any other rejection passes unchanged. */
export function fromResponseError(error: unknown): unknown {
  if (!(error instanceof ResponseError)) return error;
  if (isWriteFailure(error)) return RequestError.internalError(error.message);
  return new RequestError(error.code, error.message, error.data);
}
