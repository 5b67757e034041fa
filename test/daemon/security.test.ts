import { expect, test } from 'vitest';
import type { DaemonError } from '../../src/daemon/ports.ts';
import {
  admitRequest,
  isLoopbackAddress,
  isLoopbackName,
  type RequestHead,
  type SecurityPolicy,
} from '../../src/daemon/security.ts';
import { Daemon } from '../support/daemon.ts';

const HEAD: RequestHead = {
  method: 'POST',
  path: '/session',
  host: '127.0.0.1:4170',
  origin: undefined,
  authorization: undefined,
  fetchSite: undefined,
  fetchMode: undefined,
};
const POLICY: SecurityPolicy = { hostname: '127.0.0.1', token: undefined, requireAuth: false, allowOrigins: [] };

/** `in`, or the status and code that a request is refused with. */
function verdict(head: Partial<RequestHead>, policy: Partial<SecurityPolicy> = {}): string {
  try {
    admitRequest({ ...HEAD, ...head }, { ...POLICY, ...policy });
    return 'in';
  } catch (error) {
    const { status, code } = error as DaemonError;
    return `${status} ${code}`;
  }
}

const SECRET = { token: 's3cret' };
const PUBLIC = { ...SECRET, hostname: '0.0.0.0' };
const PAGE = { allowOrigins: ['http://localhost:3000'] };

test.each<[Partial<RequestHead>, Partial<SecurityPolicy>, string]>([
  // Host: a name that was made to point here is still another's name.
  [{}, {}, 'in'],
  [{ host: 'localhost' }, {}, 'in'],
  [{ host: 'LOCALHOST:1' }, {}, 'in'],
  [{ host: '127.8.9.1:4170' }, {}, 'in'],
  [{ host: '[::1]:4170' }, {}, 'in'],
  [{ host: undefined }, {}, '400 invalid_host'],
  [{ host: '' }, {}, '400 invalid_host'],
  [{ host: 'localhost:x' }, {}, '400 invalid_host'],
  [{ host: 'user@localhost' }, {}, '400 invalid_host'],
  [{ host: '[::1' }, {}, '400 invalid_host'],
  [{ host: 'evil.example:4170' }, {}, '403 host_not_allowed'],
  [{ host: '127.0.0.1.evil.example' }, {}, '403 host_not_allowed'],
  [{ host: 'localhost.' }, {}, '403 host_not_allowed'],
  [{ host: '192.0.2.1' }, {}, '403 host_not_allowed'],
  [{ host: '[::2]' }, {}, '403 host_not_allowed'],
  [{ host: 'daemon.example', authorization: 'Bearer s3cret' }, PUBLIC, 'in'],
  [{ host: 'daemon.example' }, PUBLIC, '401 unauthorized'],
  // Origin: the daemon's own, or one that is allowed.
  [{ origin: 'http://127.0.0.1:4170' }, {}, 'in'],
  [{ origin: 'http://127.0.0.1:4171' }, {}, '403 origin_not_allowed'],
  [{ origin: 'http://localhost:4170' }, {}, '403 origin_not_allowed'],
  [{ origin: 'http://evil.example' }, {}, '403 origin_not_allowed'],
  [{ origin: 'null' }, {}, '403 origin_not_allowed'],
  [{ origin: '' }, {}, '403 origin_not_allowed'],
  [{ origin: 'http://localhost:3000' }, PAGE, 'in'],
  [{ origin: 'http://localhost:3000.evil.example' }, PAGE, '403 origin_not_allowed'],
  [{ origin: 'https://localhost:3000' }, PAGE, '403 origin_not_allowed'],
  [{ origin: 'http://evil.example', authorization: 'Bearer s3cret' }, { ...SECRET, allowOrigins: ['*'] }, 'in'],
  [{ method: 'OPTIONS', origin: 'http://localhost:3000' }, { ...PAGE, ...SECRET }, 'in'],
  [{ method: 'OPTIONS', origin: 'http://evil.example' }, PAGE, '403 origin_not_allowed'],
  // What another page makes a browser send without an Origin.
  [{ fetchSite: 'cross-site', fetchMode: 'no-cors', method: 'GET' }, {}, '403 origin_not_allowed'],
  [{ fetchSite: 'same-site', fetchMode: 'no-cors' }, {}, '403 origin_not_allowed'],
  [{ fetchSite: 'cross-site', fetchMode: 'navigate' }, {}, '403 origin_not_allowed'],
  [{ fetchSite: 'cross-site', fetchMode: 'navigate', method: 'GET' }, {}, 'in'],
  [{ fetchSite: 'none', fetchMode: 'navigate', method: 'GET' }, {}, 'in'],
  [{ fetchSite: 'same-origin', fetchMode: 'cors' }, {}, 'in'],
  // The token.
  [{ authorization: 'Bearer s3cret' }, SECRET, 'in'],
  [{ authorization: 'bearer   s3cret ' }, SECRET, 'in'],
  [{}, SECRET, '401 unauthorized'],
  [{ authorization: 'Bearer' }, SECRET, '401 unauthorized'],
  [{ authorization: 's3cret' }, SECRET, '401 unauthorized'],
  [{ authorization: 'Basic s3cret' }, SECRET, '401 unauthorized'],
  [{ authorization: 'Bearer s3cre' }, SECRET, '401 unauthorized'],
  [{ authorization: 'Bearer s3cret2' }, SECRET, '401 unauthorized'],
  [{ authorization: 'Bearer s3cret s3cret' }, SECRET, '401 unauthorized'],
  [{ path: '/health' }, SECRET, 'in'],
  [{ path: '/health' }, { ...SECRET, requireAuth: true }, '401 unauthorized'],
  [{ path: '/health' }, PUBLIC, '401 unauthorized'],
  [{ path: '/healthy' }, SECRET, '401 unauthorized'],
  // The Host is looked at first, then the Origin: neither tells whether a token was right.
  [{ host: 'evil.example', authorization: 'Bearer no' }, SECRET, '403 host_not_allowed'],
  [{ origin: 'http://evil.example', authorization: 'Bearer no' }, SECRET, '403 origin_not_allowed'],
])('[DM-12, K088, K089] %j under %j: %s', (head, policy, expected) => {
  expect(verdict(head, policy)).toBe(expected);
});

test.each<[string, boolean]>([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.255.1.2', true],
  ['::1', true],
  ['[::1]', true],
  ['0.0.0.0', false],
  ['::', false],
  ['127.0.0.1.example', false],
  ['1127.0.0.1', false],
  ['example', false],
])('[DM-12] %s is loopback: %s', (name, expected) => {
  expect(isLoopbackName(name)).toBe(expected);
  expect(isLoopbackAddress(`::ffff:${name}`)).toBe(expected);
});

test('[DM-12] pages of an allowed origin may read answers and events, others are told nothing', async () => {
  const daemon = await Daemon.start({
    args: ['--allow-origin', 'http://a.example', '--allow-origin=http://b.example'],
  });
  const { sessionId } = await daemon.ask();
  for (const origin of ['http://a.example', 'http://b.example']) {
    const path = `/session/${sessionId}/status`;
    const preflight = { origin, 'access-control-request-method': 'POST' };
    expect((await daemon.request('OPTIONS', path, undefined, preflight)).headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-headers': expect.stringContaining('X-Qwen-Client-Id'),
    });
    expect((await daemon.get(path, { origin })).headers['access-control-allow-origin']).toBe(origin);
    expect((await daemon.get('/nope', { origin })).headers['access-control-allow-origin']).toBe(origin);
    expect((await daemon.events(sessionId, { origin })).headers['access-control-allow-origin']).toBe(origin);
  }
  expect((await daemon.get('/health')).headers).not.toHaveProperty('access-control-allow-origin');
  const own = await daemon.get('/health', { origin: daemon.url });
  expect(own.status).toBe(200);
});

test('[DM-1] /openapi.json describes the routes that there are', async () => {
  const daemon = await Daemon.start();
  const { status, body } = await daemon.get('/openapi.json');
  expect(status).toBe(200);
  const routes = Object.entries<Record<string, { operationId: string; requestBody?: unknown }>>(body.paths).flatMap(
    ([path, methods]) => Object.entries(methods).map(([method, about]) => ({ method, path, ...about })),
  );
  expect(routes.length).toBeGreaterThan(18);
  expect(new Set(routes.map(({ operationId }) => operationId)).size).toBe(routes.length);
  const unknown = new Set<string>();
  for (const { method, path } of routes) {
    if (path.endsWith('/events')) continue;
    const url = path.replace(/\{\w+\}/g, '00000000-0000-4000-8000-000000000000');
    const answer = await daemon.request(method.toUpperCase(), url, method === 'post' ? {} : undefined);
    if (answer.body.code === 'not_found') unknown.add(`${method} ${path}`);
  }
  expect([...unknown]).toEqual([]);
  const vote = body.paths['/session/{id}/permission/{requestId}'].post;
  expect(vote.requestBody.content['application/json'].schema).toMatchObject({ required: ['outcome'] });
});
