import type { Context } from '../context.ts';
import type { Daemon } from '../daemon.ts';
import type { Call } from '../http.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual, Unmet } from '../verdicts.ts';
import { better, core, expectStatus, stage } from './daemon-rows.ts';

const MOST_BODY = 10 * 1024 * 1024;
const TOKEN = 'kit-token-5f1e';
const PAGE = 'http://pages.example';

/** Any call that starts something: what a page must not be able to send. */
const OPEN: Call = { method: 'POST', path: '/session', body: { sessionScope: 'shared' } };

const refusesWith = (call: Call, status: number) => async (context: Context) => {
  const daemon = await context.shared.daemon();
  expectStatus(await daemon.send(call), status);
};

async function hostIsChecked(context: Context) {
  const daemon = await context.shared.daemon();
  for (const path of ['/capabilities', '/session/x/status', '/health'])
    expectStatus(await daemon.get(path, { host: 'pages.example' }), 403);
  expectStatus(await daemon.send({ ...OPEN, headers: { host: 'pages.example:80' } }), 403);
}

async function originIsChecked(context: Context) {
  const daemon = await context.shared.daemon();
  for (const origin of [PAGE, 'null', 'http://localhost.pages.example'])
    expectStatus(await daemon.send({ ...OPEN, headers: { origin } }), 403);
}

async function ownOriginMayCall(context: Context) {
  const daemon = await context.shared.daemon();
  expectStatus(await daemon.get('/capabilities', { origin: daemon.url }), 200);
}

async function noBodyNeedsNoType(context: Context) {
  const { daemon, session } = await stage(context);
  const headers = { 'x-qwen-client-id': session.clientId };
  expectStatus(await daemon.send({ method: 'POST', path: `/session/${session.id}/cancel`, headers }), 204);
}

async function noJsonIsRefused(context: Context) {
  const daemon = await context.shared.daemon();
  for (const raw of ['{', 'hello', '{"cwd":'])
    expectStatus(await daemon.send({ ...OPEN, raw, headers: { 'content-type': 'application/json' } }), 400);
}

async function otherTypesAreRefused(context: Context) {
  const daemon = await context.shared.daemon();
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    expectStatus(
      await daemon.send({ method: 'POST', path: '/session', raw: '{}', headers: { 'content-type': type } }),
      415,
    );
}

async function longBodiesAreRefused(context: Context) {
  const { daemon, session } = await stage(context);
  const body = { prompt: [{ type: 'text', text: 'x'.repeat(MOST_BODY) }] };
  const path = `/session/${session.id}/prompt`;
  const refused = daemon.send({ method: 'POST', path, body, headers: { 'x-qwen-client-id': session.clientId } });
  // Some hang up while the body is still on its way; then nobody has read it either.
  const answer = await refused.catch((error: unknown) => {
    if (error instanceof Unmet && /EPIPE|ECONNRESET|socket hang up/.test(error.message)) return undefined;
    throw error;
  });
  if (answer !== undefined) expectStatus(answer, 413);
  expectStatus(await daemon.get('/health'), 200);
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function tokenIsAsked(context: Context) {
  const daemon = await context.serve({ env: { QWEN_SERVER_TOKEN: TOKEN } });
  expectStatus(await daemon.get('/capabilities'), 401);
  expectStatus(await daemon.get('/capabilities', bearer(`${TOKEN}x`)), 401);
  expectStatus(await daemon.get('/capabilities', { authorization: `Basic ${TOKEN}` }), 401);
  expectStatus(await daemon.send(OPEN), 401);
  expectStatus(await daemon.get('/capabilities', bearer(TOKEN)), 200);
  expectStatus(await daemon.get('/health'), 200);
}

async function healthMayNeedTheToken(context: Context) {
  const daemon = await context.serve({ env: { QWEN_SERVER_TOKEN: TOKEN }, args: ['--require-auth'] });
  expectStatus(await daemon.get('/health'), 401);
  expectStatus(await daemon.get('/health', bearer(TOKEN)), 200);
}

/** Expects that a daemon which is started so ends of itself, with an error. */
const doesNotStart =
  (...args: string[]) =>
  async (context: Context) => {
    const started: Daemon | Error = await context.serve({ args }).catch((error: unknown) => error as Error);
    expect(started instanceof Error, `it listens with ${args.join(' ')}`);
    expect(/the daemon ended: (?!exit code 0)/.test(started.message), started.message);
  };

async function othersNeedAToken(context: Context) {
  const started = await context.serve({ args: ['--hostname', '0.0.0.0'] }).catch((error: unknown) => error as Error);
  if (!(started instanceof Error)) return expectStatus(await started.get('/capabilities'), 401);
  return expect(/the daemon ended: (?!exit code 0)/.test(started.message), started.message);
}

async function pagesMayBeAllowed(context: Context) {
  // Some let foreign pages in only where these have to know a token.
  const daemon = await context.serve({ env: { QWEN_SERVER_TOKEN: TOKEN }, args: ['--allow-origin', PAGE] });
  const answer = await daemon.get('/capabilities', { origin: PAGE, ...bearer(TOKEN) });
  expectStatus(answer, 200);
  expectEqual(answer.headers['access-control-allow-origin'], PAGE, 'Access-Control-Allow-Origin', answer);
  expectStatus(await daemon.get('/capabilities', { origin: 'http://other.example', ...bearer(TOKEN) }), 403);
}

const CROSS_SITE = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' };

export const GUARD: readonly Check[] = [
  ...core(
    'daemon',
    ['GUARD-1', 'DM-12', 'A Host header that names another machine is a 403, on every route.', hostIsChecked],
    ['GUARD-2', 'DM-12', 'A call of a foreign web page is a 403.', originIsChecked],
    ['GUARD-3', 'DM-12', "A page of the daemon's own origin may call.", ownOriginMayCall],
    ['GUARD-4', 'DM-12', 'A POST without a body needs no content type.', noBodyNeedsNoType],
    ['GUARD-5', 'DM-1', 'A body that is no JSON is a 400.', noJsonIsRefused],
  ),
  ...better(
    'daemon',
    ['GUARD-6', 'DM-12', 'A body of another content type is a 415.', otherTypesAreRefused],
    [
      'GUARD-7',
      'DM-12',
      'What a browser says that another site sent is a 403, without an Origin too.',
      refusesWith({ method: 'GET', path: '/capabilities', headers: CROSS_SITE }, 403),
    ],
  ),
  ...core('daemon', ['GUARD-8', 'DM-12', 'A body of more than 10 MiB is not taken.', longBodiesAreRefused]),
  ...core(
    'served',
    ['GUARD-9', 'DM-12', 'With a token all but /health needs it: 401.', tokenIsAsked],
    ['GUARD-10', 'DM-12', 'With --require-auth /health needs it, too.', healthMayNeedTheToken],
    ['GUARD-11', 'DM-12', 'With --require-auth it does not start without a token.', doesNotStart('--require-auth')],
    [
      'GUARD-12',
      'DM-12',
      'It listens for other machines only with a token: it asks for one, or does not start.',
      othersNeedAToken,
    ],
    [
      'GUARD-13',
      'DM-12',
      'With --allow-origin the pages of that origin may call, and read the answer.',
      pagesMayBeAllowed,
    ],
  ),
];
