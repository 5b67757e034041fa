import type {
  ApprovalReply,
  ApprovalRequest,
  QuestionReply,
  QuestionRequest,
  SessionClient,
  SessionEvent,
  SessionRef,
} from '../session/ports.ts';
import { askClient, askForApproval, type ClientIdentity } from './ask.ts';
import type { Connection } from './connection.ts';
import { HangUpError } from './errors.ts';
import { UpdateFrames } from './frames.ts';
import { drainMidTurnQueue } from './methods.ts';
import { isRecord } from '../is-record.ts';

/** A daemon that does not say what it has queued is not waited for longer than this, in ms. */
const DRAIN_DEADLINE_MS = 2_000;

/** The session's client over the connection: updates out, questions asked, the daemon's queue read. */
export class WireClient implements SessionClient {
  readonly #connection: Connection;
  readonly #client: ClientIdentity;
  readonly #frames = new WeakMap<SessionRef, UpdateFrames>();

  /** `client` is looked at when it matters, as it introduces itself later. */
  constructor(connection: Connection, client: ClientIdentity) {
    this.#connection = connection;
    this.#client = client;
  }

  update(session: SessionRef, event: SessionEvent): Promise<void> | undefined {
    // The reference sends a daemon nothing but titles that a person or its model gave.
    if (event.kind === 'title' && this.#client.isDaemon) return undefined;
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

  ask(request: QuestionRequest, signal: AbortSignal): Promise<QuestionReply> {
    return askClient(this.#connection, this.#client, request, signal);
  }

  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalReply> {
    return askForApproval(this.#connection, request, signal);
  }

  async drainQueue(sessionId: string, promptId: string | undefined, signal: AbortSignal): Promise<readonly string[]> {
    // Only a daemon is sent what the protocol does not know.
    if (!this.#client.isDaemon) return [];
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

/** Nobody is there to see it any more. The turn ends by its signal; an error here would be recorded as how it ended. */
async function unlessGone(sent: Promise<void>): Promise<void> {
  try {
    await sent;
  } catch (error) {
    if (!(error instanceof HangUpError)) throw error;
  }
}
