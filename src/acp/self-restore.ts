import type { Log } from '../log.ts';
import type { Loaded } from '../session/sessions.ts';
import type { PromptEnd, PromptRequest } from '../session/tracked-turn.ts';
import type { Connection } from './connection.ts';
import { toRequestError } from './faults.ts';
import { sessionUpdate } from './methods.ts';
import type { AfterResponse } from './serving.ts';

export interface SelfRestoreDeps {
  readonly connection: Connection;
  readonly log: Log;
}

/** Runs a turn until it ends or `stopped` says so. */
type Run = (signal: AbortSignal, prompt: (stopped: AbortSignal) => Promise<PromptEnd>) => Promise<PromptEnd>;

const UNSOLICITED: PromptRequest = { kind: 'restore', unsolicited: true };

/**
 * For a client that would not ask for it: once the response with the hint is on the wire, asks the open questions of the
 * session again. The turn belongs to no prompt of the client, so it runs under the connection's signal.
 */
export function askAgainAfter(
  { session, open }: Loaded,
  afterResponse: AfterResponse,
  run: Run,
  { connection, log }: SelfRestoreDeps,
): void {
  if (open.size === 0) return;
  const failed = async (error: unknown): Promise<void> => {
    log.warn(`the questions of session ${session.id} were asked again, but the turn failed`, error);
    // No response says so, and whoever has answered would wait for ever.
    const text = `The turn ended with an error: ${toRequestError(error)?.message ?? 'Internal error'}`;
    const update = { sessionUpdate: 'agent_message_chunk' as const, content: { type: 'text' as const, text } };
    await connection.notify(sessionUpdate, { sessionId: session.id, update }).catch(() => {});
  };
  afterResponse(() => {
    run(connection.signal, (stopped) => session.prompt(UNSOLICITED, stopped)).catch(failed);
  });
}
