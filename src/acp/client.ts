import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type {
  ApprovalReply,
  ApprovalRequest,
  QuestionReply,
  QuestionRequest,
  SessionClient,
  SessionEvent,
  SessionRef,
} from '../session/ports.ts';
import { approvalReply, approvalRequest } from './approval.ts';
import type { Connection } from './connection.ts';
import { HangUpError, RequestError } from './errors.ts';
import { UpdateFrames } from './frames.ts';
import { drainMidTurnQueue, requestPermission } from './methods.ts';
import { failedReply, permissionRequest, questionReply } from './permission.ts';
import { isRecord } from './rpc.ts';

/** A daemon that does not say what it has queued is not waited for longer than this, in ms. */
const DRAIN_DEADLINE_MS = 2_000;

/** The session's client over the connection: updates out, questions asked, the daemon's queue read. */
export class WireClient implements SessionClient {
  readonly #connection: Connection;
  readonly #isDaemon: () => boolean;
  readonly #frames = new WeakMap<SessionRef, UpdateFrames>();

  /** `isDaemon`: only a daemon is sent what the protocol does not know. */
  constructor(connection: Connection, isDaemon: () => boolean) {
    this.#connection = connection;
    this.#isDaemon = isDaemon;
  }

  update(session: SessionRef, event: SessionEvent): Promise<void> | undefined {
    let frames = this.#frames.get(session);
    if (frames === undefined) {
      frames = new UpdateFrames(session.id, session.cwd);
      this.#frames.set(session, frames);
    }
    const message = frames.message(event);
    if (message === undefined) return undefined;
    const sent = this.#connection.notifyRaw(message);
    return this.#connection.writable ? undefined : unlessGone(sent);
  }

  async ask(request: QuestionRequest, signal: AbortSignal): Promise<QuestionReply> {
    return await this.#request(permissionRequest(request), questionReply, signal);
  }

  async approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalReply> {
    return await this.#request(approvalRequest(request), (result) => approvalReply(request, result), signal);
  }

  async #request<T>(
    params: RequestPermissionRequest,
    read: (result: unknown) => T,
    signal: AbortSignal,
  ): Promise<T | Unasked> {
    try {
      return read(await this.#connection.request(requestPermission, params, { signal }));
    } catch (error) {
      // A client that is gone has decided nothing.
      if (signal.aborted || error instanceof HangUpError) return { kind: 'unattended', reason: 'abort' };
      if (error instanceof RequestError) return failedReply(error.code, error.message);
      throw error;
    }
  }

  async drainQueue(sessionId: string, promptId: string | undefined, signal: AbortSignal): Promise<readonly string[]> {
    if (!this.#isDaemon()) return [];
    try {
      const options = { signal, deadlineMs: DRAIN_DEADLINE_MS };
      const params = { sessionId, ...(promptId !== undefined && { promptId }) };
      const result = await this.#connection.request(drainMidTurnQueue, params, options);
      const messages = isRecord(result) ? result['messages'] : undefined;
      return Array.isArray(messages) ? messages.filter((message) => typeof message === 'string' && message !== '') : [];
    } catch {
      // Whatever kept the daemon from saying so, the turn goes on without what it queued.
      return [];
    }
  }
}

/** What is no answer to anything that was asked. */
type Unasked = Extract<QuestionReply, { kind: 'unattended' | 'failed' }>;

/** Nobody is there to see it any more. The turn ends by its signal; an error here would be recorded as how it ended. */
async function unlessGone(sent: Promise<void>): Promise<void> {
  try {
    await sent;
  } catch (error) {
    if (!(error instanceof HangUpError)) throw error;
  }
}
