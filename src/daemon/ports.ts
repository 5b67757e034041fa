import type { ContentBlock, RequestPermissionRequest } from '@agentclientprotocol/sdk';

/** An error that a route answers with: `{error, code?, ...details}` under its status. */
export class DaemonError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;
  /** Seconds, for a Retry-After header. */
  readonly retryAfter: number | undefined;

  constructor(
    status: number,
    message: string,
    more: {
      readonly code?: string;
      readonly details?: Readonly<Record<string, unknown>>;
      readonly retryAfter?: number;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: more.cause });
    this.name = 'DaemonError';
    this.status = status;
    this.code = more.code;
    this.details = more.details ?? {};
    this.retryAfter = more.retryAfter;
  }
}

/** What every call is refused with once the daemon is told to stop. */
export function shuttingDown(): DaemonError {
  return new DaemonError(503, 'The daemon is shutting down', { code: 'daemon_shutdown', retryAfter: 1 });
}

/** A daemon event as subscribers see it. `id` numbers a session's events from 1; synthetic ones have none. */
export interface DaemonEvent {
  readonly id?: number;
  readonly v: 1;
  readonly type: string;
  readonly promptId?: string;
  readonly data: unknown;
  readonly originatorClientId?: string;
  readonly _meta: { readonly serverTimestamp: number };
}

/** The answer to create, load and resume. */
export interface Attached {
  readonly sessionId: string;
  readonly workspaceCwd: string;
  readonly attached: boolean;
  readonly clientId: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

export interface AdmittedPrompt {
  readonly promptId: string;
  readonly lastEventId: number;
  readonly eventEpoch: string;
}

/** Who calls: the client id of the header if there was one, and whether the socket is a loopback one. */
export interface Caller {
  /** Syntactically valid. */
  readonly clientId: string | undefined;
  readonly loopback: boolean;
}

/** A question or permission that waits for a vote. */
export interface PendingInteraction {
  readonly requestId: string;
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly originatorClientId: string | undefined;
  readonly kind: 'user_question' | 'permission';
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly request: RequestPermissionRequest;
  /** Client ids that were attached when it was issued. */
  readonly voters: ReadonlySet<string>;
}

/** A vote off the wire, its shape checked. */
export type Vote =
  | {
      readonly kind: 'selected';
      readonly optionId: string;
      readonly answers?: Readonly<Record<string, string | readonly string[]>>;
    }
  | { readonly kind: 'cancelled' };

/** How an interaction ended; goes to the child as the permission's response and to subscribers as `permission_resolved`. */
export type Resolution =
  | { readonly kind: 'voted'; readonly vote: Vote; readonly voterClientId: string | undefined }
  | { readonly kind: 'unattended'; readonly reason: 'timeout' | 'session_closed' }
  /** The child is gone or withdrew the request. */
  | { readonly kind: 'withdrawn' };

export type PermissionStrategy = 'first-responder' | 'designated' | 'consensus' | 'local-only';

export interface ServeOptions {
  readonly port: number;
  readonly hostname: string;
  readonly restoreAskUserQuestion: boolean;
  readonly experimentalLsp: boolean;
  readonly permissionStrategy: PermissionStrategy | undefined;
  readonly consensusQuorum: number | undefined;
  /** Milliseconds; 0 waits for ever. */
  readonly permissionResponseTimeoutMs: number;
  /** Milliseconds that the child may take to answer `initialize`. */
  readonly initializeTimeoutMs: number;
  readonly token: string | undefined;
  readonly requireAuth: boolean;
  readonly allowOrigins: readonly string[];
  readonly maxSessions: number;
  readonly maxConnections: number;
  /** Passed on to the child: --auth-type, --model, --script, --log-level. */
  readonly childArgs: readonly string[];
  /** The workspace; the daemon's working directory. */
  readonly cwd: string;
}

/** What the routes call: the daemon without HTTP. Every method may throw `DaemonError`. */
export interface Bridge {
  createSession(
    request: { readonly cwd?: string; readonly sessionId?: string; readonly sessionScope?: 'thread' | 'shared' },
    caller: Caller,
  ): Promise<Attached & { readonly hasActivePrompt?: boolean }>;
  load(
    sessionId: string,
    request: { readonly cwd?: string; readonly historyPageSize?: number },
    caller: Caller,
  ): Promise<Record<string, unknown>>;
  resume(sessionId: string, request: { readonly cwd?: string }, caller: Caller): Promise<Record<string, unknown>>;
  prompt(sessionId: string, prompt: readonly ContentBlock[], meta: unknown, caller: Caller): Promise<AdmittedPrompt>;
  cancel(sessionId: string, caller: Caller): Promise<void>;
  continueSession(sessionId: string, caller: Caller): Promise<Record<string, unknown>>;
  branch(sessionId: string, request: { readonly name?: string }, caller: Caller): Promise<Record<string, unknown>>;
  detach(sessionId: string, caller: Caller): Promise<void>;
  heartbeat(sessionId: string, caller: Caller): Promise<Record<string, unknown>>;
  close(sessionId: string, caller: Caller): Promise<void>;
  status(sessionId: string): Promise<Record<string, unknown>>;
  transcript(sessionId: string): Promise<Record<string, unknown>>;
  sessions(cwd: string): Promise<Record<string, unknown>>;
  /** `sessionId` undefined: any session's request. */
  vote(sessionId: string | undefined, requestId: string, vote: Vote, caller: Caller): Promise<void>;
  /** Subscribes from now on, or after `lastEventId` where it is given. */
  subscribe(
    sessionId: string,
    options: { readonly lastEventId?: number; readonly snapshot: boolean },
  ): Promise<Subscription>;
  health(): Record<string, unknown>;
  capabilities(): Record<string, unknown>;
  daemonStatus(): Record<string, unknown>;
  /** Resolves what hangs as `session_closed`, tells subscribers, ends the child. */
  shutdown(): Promise<void>;
}

/** A subscriber's end of a session's events: already encoded blocks of server-sent events. */
export interface Subscription {
  /** The next blocks, waiting for them; undefined when the session's events are over or the reader was cut off. */
  next(signal: AbortSignal): Promise<Uint8Array | undefined>;
  close(): void;
}
