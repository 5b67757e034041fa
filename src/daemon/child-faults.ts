import { DeadlineError, ERROR_CODE, HangUpError, RequestError } from '../acp/errors.ts';
import { DaemonError } from './ports.ts';

export function sessionNotFound(sessionId: string): DaemonError {
  return new DaemonError(404, `No session with id "${sessionId}"`, {
    code: 'session_not_found',
    details: { sessionId },
  });
}

/** What a route answers when a call to the child failed. */
export function toDaemonError(cause: unknown, sessionId?: string): DaemonError {
  if (cause instanceof DaemonError) return cause;
  if (cause instanceof RequestError) return ofRequestError(cause, sessionId);
  const details = sessionId === undefined ? {} : { sessionId };
  if (cause instanceof DeadlineError) {
    return new DaemonError(504, 'The agent did not answer in time', { code: 'agent_timeout', details, cause });
  }
  if (cause instanceof HangUpError) {
    return new DaemonError(503, `The agent process is gone: ${cause.message}`, {
      code: 'agent_channel_closed',
      details,
      retryAfter: 1,
      cause,
    });
  }
  return new DaemonError(500, 'The agent could not be reached', { code: 'agent_unavailable', details, cause });
}

function ofRequestError(cause: RequestError, sessionId: string | undefined): DaemonError {
  if (cause.code === ERROR_CODE.resourceNotFound && sessionId !== undefined) return sessionNotFound(sessionId);
  const details = sessionId === undefined ? {} : { sessionId };
  switch (cause.code) {
    case ERROR_CODE.transcriptChanged:
      return new DaemonError(409, cause.message, { code: 'session_transcript_changed', details, cause });
    case ERROR_CODE.invalidParams:
      return new DaemonError(400, cause.message, { code: 'invalid_request', details, cause });
    default:
      // The reference's clients read the child's own code here.
      return new DaemonError(500, cause.message, { details: { ...details, code: cause.code }, cause });
  }
}

/** The child does not know the method, so its older counterpart may be tried. */
export function isMethodNotFound(error: unknown): boolean {
  return error instanceof RequestError && error.code === ERROR_CODE.methodNotFound;
}
