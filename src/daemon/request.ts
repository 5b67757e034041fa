import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import type { Caller } from './ports.ts';
import { DaemonError } from './ports.ts';
import { isLoopbackAddress, type RequestHead } from './security.ts';

/** Hono's context; without bindings where there is no socket. */
export type HttpContext = Context<{ Bindings: Partial<HttpBindings> }>;

const CLIENT_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function requestHead(c: HttpContext): RequestHead {
  return {
    method: c.req.method,
    path: c.req.path,
    // Once: the URL that Hono makes of it would hide what is wrong with it.
    host: c.env?.incoming?.headers.host ?? c.req.header('host') ?? new URL(c.req.url).host,
    origin: c.req.header('origin'),
    authorization: c.req.header('authorization'),
    fetchSite: c.req.header('sec-fetch-site'),
    fetchMode: c.req.header('sec-fetch-mode'),
  };
}

/** Who calls. Throws for a client id that is none. */
export function callerOf(c: HttpContext): Caller {
  const clientId = c.req.header('x-qwen-client-id');
  if (clientId !== undefined && !CLIENT_ID.test(clientId)) {
    const rule = '`X-Qwen-Client-Id` must be 1 to 128 letters, digits and . _ : -';
    throw new DaemonError(400, rule, { code: 'invalid_client_id' });
  }
  // What a proxy on this machine passes on comes from elsewhere.
  const passedOn = c.req.header('forwarded') !== undefined || c.req.header('x-forwarded-for') !== undefined;
  const loopback = !passedOn && isLoopbackAddress(c.env?.incoming?.socket.remoteAddress);
  return { clientId, loopback };
}

/** The session's id in the path, in lower case. What is no UUID is no session's. */
export function sessionIdOf(c: HttpContext): string {
  const given = c.req.param('id') ?? '';
  if (UUID.test(given)) return given.toLowerCase();
  const sessionId = given.slice(0, 128);
  const details = { sessionId };
  throw new DaemonError(404, `There is no session with id ${JSON.stringify(sessionId)}`, {
    code: 'session_not_found',
    details,
  });
}

/** The permission request's id in the path. */
export function requestIdOf(c: HttpContext): string {
  const requestId = c.req.param('requestId') ?? '';
  if (UUID.test(requestId)) return requestId.toLowerCase();
  throw new DaemonError(404, 'No permission request with this id waits', {
    details: { requestId: requestId.slice(0, 128) },
  });
}

/** The number of the last event that a client has seen; undefined where it does not say. */
export function lastEventIdOf(c: HttpContext): number | undefined {
  const given = c.req.header('last-event-id');
  if (given === undefined || given === '') return undefined;
  const lastEventId = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
  if (Number.isSafeInteger(lastEventId)) return lastEventId;
  throw new DaemonError(400, '`Last-Event-ID` must be the number of an event', { code: 'invalid_last_event_id' });
}
