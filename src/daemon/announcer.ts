import type { SessionEntry } from './entry.ts';
import type { Registry } from './registry.ts';
import type { InteractionEvent } from './replies.ts';

/** Says on a session's events what becomes of its requests. */
export class Announcer {
  readonly #registry: Registry;
  /** Where each waiting request was asked: the session may have died and been brought back since. */
  readonly #askedIn = new Map<string, SessionEntry>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  publish(event: InteractionEvent): void {
    const { type, sessionId, data } = event;
    const requestId = String(data['requestId']);
    const entry = this.#askedIn.get(requestId) ?? this.#registry.known(sessionId);
    if (type === 'permission_request' && entry) this.#askedIn.set(requestId, entry);
    if (type === 'permission_resolved') this.#askedIn.delete(requestId);
    entry?.publish(type, data, event);
  }

  /** The session of a request that waits. */
  sessionOf(requestId: string): string | undefined {
    return this.#askedIn.get(requestId)?.sessionId;
  }
}
