import { createHash, timingSafeEqual } from 'node:crypto';
import { DaemonError } from './ports.ts';

/** Who may call the daemon. */
export interface SecurityPolicy {
  /** The address that it listens on. */
  readonly hostname: string;
  readonly token: string | undefined;
  readonly requireAuth: boolean;
  /** Origins of web pages, or `*` for every one. */
  readonly allowOrigins: readonly string[];
}

/** What of a request decides whether it is let in. */
export interface RequestHead {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly authorization: string | undefined;
  /** `Sec-Fetch-Site` and `Sec-Fetch-Mode`, which browsers send and pages cannot change. */
  readonly fetchSite: string | undefined;
  readonly fetchMode: string | undefined;
}

export function isLoopbackName(name: string): boolean {
  const bare = name.replace(/^\[|\]$/g, '').toLowerCase();
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}

/** A socket's address, IPv4 in IPv6 included. */
export function isLoopbackAddress(address: string | undefined): boolean {
  return address !== undefined && isLoopbackName(address.replace(/^::ffff:/i, ''));
}

/** Lets a request in, or throws the `DaemonError` that refuses it. The order: Host, Origin, token. */
export function admitRequest(head: RequestHead, policy: SecurityPolicy): void {
  checkHost(head, policy);
  checkOrigin(head, policy);
  // A preflight never carries a token, and learns nothing but which headers to send.
  if (!isPreflight(head)) checkToken(head, policy);
}

/** A browser's question whether a page of this origin may send the request it has in mind. */
export function isPreflight(head: RequestHead): boolean {
  return head.method === 'OPTIONS' && head.origin !== undefined;
}

/** Whether a page of this origin, which is not the daemon's own, may read the answer. */
export function isAllowedOrigin(origin: string, policy: SecurityPolicy): boolean {
  return policy.allowOrigins.some((allowed) => allowed === '*' || allowed.toLowerCase() === origin.toLowerCase());
}

/** A page whose name was made to point at this machine (DNS rebinding) still sends its own name. */
function checkHost({ host }: RequestHead, policy: SecurityPolicy): void {
  const name = hostName(host);
  if (name === undefined)
    throw new DaemonError(400, 'The Host header is missing or malformed.', { code: 'invalid_host' });
  // Where other machines are let in, their names for this one are unknown, and the token guards.
  if (!isLoopbackName(policy.hostname) || isLoopbackName(name) || name === policy.hostname.toLowerCase()) return;
  throw new DaemonError(403, 'The Host header names another machine than this one.', { code: 'host_not_allowed' });
}

function checkOrigin(head: RequestHead, policy: SecurityPolicy): void {
  const { origin, host, fetchSite, fetchMode } = head;
  if (origin !== undefined) {
    const own = [`http://${host}`, `https://${host}`].includes(origin.toLowerCase());
    if (own || isAllowedOrigin(origin, policy)) return;
    throw new DaemonError(403, 'Web pages of this origin may not call the daemon.', { code: 'origin_not_allowed' });
  }
  // Without an Origin header, but from another page: an image, a script, a form. Only a link that is followed may be.
  const crossSite = fetchSite === 'cross-site' || fetchSite === 'same-site';
  if (crossSite && !(fetchMode === 'navigate' && head.method === 'GET')) {
    throw new DaemonError(403, 'Other web pages may not call the daemon.', { code: 'origin_not_allowed' });
  }
}

function checkToken({ path, authorization }: RequestHead, policy: SecurityPolicy): void {
  if (policy.token === undefined) return;
  if (path === '/health' && isLoopbackName(policy.hostname) && !policy.requireAuth) return;
  const [, given] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  if (given !== undefined && isSameSecret(given, policy.token)) return;
  throw new DaemonError(401, 'A valid bearer token is needed.', { code: 'unauthorized' });
}

/** Takes the same time wherever the two differ, and however long they are. */
function isSameSecret(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/** The name in a Host header, in lower case and without brackets; undefined for what is none. */
function hostName(host: string | undefined): string | undefined {
  const [, name, bracketed] = /^(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::\d{1,5})?$/i.exec(host ?? '') ?? [];
  return (name ?? bracketed)?.toLowerCase();
}
