import { isAbsolute } from 'node:path';
import { SessionFault } from '../session/faults.ts';
import type { Session } from '../session/session.ts';
import type { Sessions } from '../session/sessions.ts';
import { RequestError } from './errors.ts';

/** The live session that a client names. Throws `RequestError` where there is none. */
export function liveSession(sessions: Sessions, sessionId: string): Session {
  const session = sessions.find(sessionId);
  if (session === undefined) throw RequestError.sessionNotFound(sessionId);
  return session;
}

/** Ends a live session. Throws `RequestError` where there is none. */
export async function closeLive(sessions: Sessions, sessionId: string): Promise<void> {
  liveSession(sessions, sessionId);
  await sessions.close(sessionId);
}

/** Runs what may not find the session; the protocol wants the id as the client wrote it. */
export async function named<T>(sessionId: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SessionFault && error.kind === 'unknown_session')
      throw RequestError.sessionNotFound(sessionId);
    throw error;
  }
}

/** A folder that a client names. Throws `RequestError` naming the param at `path`. */
export function absolute(folder: string, path = '/cwd'): string {
  if (isAbsolute(folder)) return folder;
  throw RequestError.invalidParams([{ path, message: 'must be an absolute path' }]);
}
