import { SessionFault } from './faults.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True for a session id in the form that it has on disk: a UUID in lower case. */
export function isStoredSessionId(text: string): boolean {
  return UUID.test(text);
}

/**
 * The session id as it is stored: a UUID in lower case. Every id passes through here before it becomes a path.
 * Throws `SessionFault` `unknown_session` for anything else, since no session can have such an id.
 */
export function parseSessionId(text: string): string {
  const id = text.toLowerCase();
  if (!isStoredSessionId(id)) throw new SessionFault('unknown_session', `There is no session ${quoted(text)}.`);
  return id;
}

/** A client may send megabytes as an id; the error needs to show only enough of it to be recognised. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
