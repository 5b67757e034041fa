import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createApp } from '../../src/daemon/app.ts';
import type { Bridge } from '../../src/daemon/ports.ts';
import { createHttpServer } from '../../src/daemon/serve.ts';
import { createLog } from '../../src/log.ts';
import { Daemon, type Question, send } from '../support/daemon.ts';
import { RESTORE, SUPPRESS } from '../support/peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every form
type Json = any;
type Hostile = (
  question: Question,
  port: string,
) => [method: string, path: string, body?: unknown, headers?: Record<string, string> | undefined];

const JSON_TYPE = { 'content-type': 'application/json' };
const SUBMIT = { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Blue' } };
const CONTINUE = 'qwen.daemon.continueLastTurn';
const NOBODY = '00000000-0000-4000-8000-000000000000';
const vote = (body: unknown, headers?: Record<string, string>): Hostile => {
  return (q) => ['POST', `/session/${q.sessionId}/permission/${q.requestId}`, body, headers];
};
const at = (method: string, tail: string, body?: unknown, headers?: Record<string, string>): Hostile => {
  return (q) => [method, `/session/${q.sessionId}${tail}`, body, headers];
};
const plain =
  (...request: [string, string, unknown?, Record<string, string>?]): Hostile =>
  () =>
    request;

/** What is sent, the status that it gets, and the code or a part of the words. */
const TABLE: readonly [string, Hostile, number, string | RegExp][] = [
  // Bodies that are no JSON, or not the JSON that they should be.
  ['half an object', at('POST', '/prompt', '{"prompt":', JSON_TYPE), 400, /not valid JSON/],
  [
    'invalid UTF-8',
    at('POST', '/prompt', '{"prompt":"\ud800"}', { 'content-type': 'application/json' }),
    400,
    /prompt/,
  ],
  [
    'a text with a DELETE',
    at('DELETE', '', 'x', { 'content-type': 'text/plain', 'content-length': '1' }),
    415,
    'unsupported_media_type',
  ],
  ['a list', at('POST', '/prompt', []), 400, /JSON object/],
  ['null', at('POST', '/prompt', null), 400, /JSON object/],
  ['a text', plain('POST', '/session', '"x"', JSON_TYPE), 400, /JSON object/],
  ['a deep nest', at('POST', '/prompt', `${'['.repeat(200_000)}`, JSON_TYPE), 400, /not valid JSON/],
  ['no prompt', at('POST', '/prompt', {}), 400, /at least one content block/],
  ['an empty prompt', at('POST', '/prompt', { prompt: [] }), 400, /at least one content block/],
  ['a prompt that is a text', at('POST', '/prompt', { prompt: 'x' }), 400, /at least one content block/],
  ['a block that is a text', at('POST', '/prompt', { prompt: ['x'] }), 400, /`prompt\[0\]`/],
  ['a block of no known type', at('POST', '/prompt', { prompt: [{ type: 'nope' }] }), 400, /prompt\[0\]/],
  ['a block without its text', at('POST', '/prompt', { prompt: [{ type: 'text' }] }), 400, /`prompt\[0\]\.text`/],
  ['a text that is a number', at('POST', '/prompt', { prompt: [{ type: 'text', text: 1 }] }), 400, /of type string/],
  [
    'a `_meta` that is a list',
    at('POST', '/prompt', { prompt: [{ type: 'text', text: 'x' }], _meta: [] }),
    400,
    /_meta/,
  ],
  ['a cwd that is a number', plain('POST', '/session', { cwd: 1 }), 400, /`cwd`/],
  ['a cwd elsewhere', plain('POST', '/session', { cwd: '/' }), 400, 'workspace_mismatch'],
  ['a cwd that is relative', plain('POST', '/session', { cwd: '.' }), 400, /absolute path/],
  ['a cwd without end', plain('POST', '/session', { cwd: `/${'x'.repeat(5000)}` }), 400, /at most 4096/],
  ['a session id that is a path', plain('POST', '/session', { sessionId: '../../x' }), 400, 'invalid_session_id'],
  ['a session id that is a list', plain('POST', '/session', { sessionId: [NOBODY] }), 400, 'invalid_session_id'],
  ['no known scope', plain('POST', '/session', { sessionScope: 'all' }), 400, /one of "thread"/],
  ['a page of 0', at('POST', '/load', { historyPageSize: 0 }), 400, 'invalid_transcript_limit'],
  ['a page of 501', at('POST', '/load', { historyPageSize: 501 }), 400, 'invalid_transcript_limit'],
  ['a page of 1.5', at('POST', '/load', { historyPageSize: 1.5 }), 400, 'invalid_transcript_limit'],
  ['a branch name that is a list', at('POST', '/branch', { name: [] }), 400, /`name`/],
  // Votes.
  ['no outcome', vote({}), 400, /`outcome` must be/],
  ['a vote without a body', vote(undefined), 400, /`outcome` must be/],
  ['a flat outcome', vote({ optionId: 'proceed_once' }), 400, /`outcome` must be/],
  ['an outcome of no known kind', vote({ outcome: { outcome: 'weird' } }), 400, /`outcome` must be/],
  ['a selection of nothing', vote({ outcome: { outcome: 'selected' } }), 400, /`outcome` must be/],
  [
    'an option that is a list',
    vote({ outcome: { outcome: 'selected', optionId: ['proceed_once'] } }),
    400,
    /`outcome`/,
  ],
  [
    'an outcome out of the prototype',
    vote('{"__proto__":{"outcome":{"outcome":"cancelled"}}}', JSON_TYPE),
    400,
    /`outcome`/,
  ],
  [
    'an option that was not offered',
    vote({ outcome: { outcome: 'selected', optionId: 'zzz' } }),
    400,
    'invalid_option_id',
  ],
  ['an empty option', vote({ outcome: { outcome: 'selected', optionId: '' } }), 400, 'invalid_option_id'],
  [
    'an option that every object has',
    vote({ outcome: { outcome: 'selected', optionId: 'constructor' } }),
    400,
    'invalid_option_id',
  ],
  ['no answers', vote({ outcome: SUBMIT.outcome }), 400, 'invalid_answers'],
  ['empty answers', vote({ ...SUBMIT, answers: {} }), 400, 'invalid_answers'],
  ['answers that are a list', vote({ ...SUBMIT, answers: ['Blue'] }), 400, 'invalid_answers'],
  ['answers that are a text', vote({ ...SUBMIT, answers: 'Blue' }), 400, 'invalid_answers'],
  ['answers that are null', vote({ ...SUBMIT, answers: null }), 400, 'invalid_answers'],
  ['an answer that is a number', vote({ ...SUBMIT, answers: { 0: 5 } }), 400, 'invalid_answers'],
  ['an answer that is empty', vote({ ...SUBMIT, answers: { 0: '' } }), 400, 'invalid_answers'],
  ['an answer that is an object', vote({ ...SUBMIT, answers: { 0: {} } }), 400, 'invalid_answers'],
  ['several answers to a single choice', vote({ ...SUBMIT, answers: { 0: ['Red', 'Blue'] } }), 400, 'invalid_answers'],
  ['an answer to no question', vote({ ...SUBMIT, answers: { 1: 'Blue' } }), 400, 'invalid_answers'],
  ['an answer under a name', vote({ ...SUBMIT, answers: { Colour: 'Blue' } }), 400, 'invalid_answers'],
  [
    'an answer to the prototype',
    vote(`{"outcome":${JSON.stringify(SUBMIT.outcome)},"answers":{"__proto__":"Blue"}}`, JSON_TYPE),
    400,
    'invalid_answers',
  ],
  [
    'a vote of a client nobody knows',
    vote(SUBMIT, { ...JSON_TYPE, 'x-qwen-client-id': 'client_nope' }),
    400,
    'invalid_client_id',
  ],
  ['a vote for no request', at('POST', `/permission/${NOBODY}`, SUBMIT), 404, /./],
  ['a vote for a request that is a path', at('POST', '/permission/..%2f..%2fx', SUBMIT), 404, /./],
  [
    'a vote in no session',
    (q) => ['POST', `/session/${NOBODY}/permission/${q.requestId}`, SUBMIT],
    404,
    'session_not_found',
  ],
  ['a vote for nothing at all', plain('POST', `/permission/${NOBODY}`, SUBMIT), 404, /./],
  // Ids and routes.
  ['a session id with a path in it', plain('GET', '/session/..%2f..%2fetc%2fpasswd/status'), 404, 'session_not_found'],
  ['a session id that every object has', plain('GET', '/session/__proto__/status'), 404, 'session_not_found'],
  ['a session id with a NUL', plain('GET', '/session/%00/status'), 404, 'session_not_found'],
  ['a session id in broken encoding', plain('GET', '/session/%E0%A4%A/status'), 404, /./],
  ['a session id without end', plain('GET', `/session/${'a'.repeat(9000)}/status`), 404, 'session_not_found'],
  ['a load of a path', plain('POST', '/session/..%2fx/load', {}), 404, 'session_not_found'],
  ['a load of nobody', plain('POST', `/session/${NOBODY}/load`, {}), 404, 'session_not_found'],
  ['another workspace', plain('GET', '/workspace/%2Fetc/sessions'), 400, 'workspace_mismatch'],
  ['no route', plain('GET', '/nope'), 404, 'not_found'],
  ['no method of a route', at('PUT', '/status'), 404, 'not_found'],
  [
    'an event number that is none',
    at('GET', '/events', undefined, { 'last-event-id': '1e3' }),
    400,
    'invalid_last_event_id',
  ],
  ['events of nobody', plain('GET', `/session/${NOBODY}/events`), 404, 'session_not_found'],
  // Headers.
  ['a client id with spaces', at('GET', '/status', undefined, { 'x-qwen-client-id': 'a b' }), 400, 'invalid_client_id'],
  ['an empty client id', at('POST', '/detach', {}, { 'x-qwen-client-id': '' }), 400, 'invalid_client_id'],
  ['a client id of 129', at('POST', '/detach', {}, { 'x-qwen-client-id': 'a'.repeat(129) }), 400, 'invalid_client_id'],
  ['two client ids', at('POST', '/detach', {}, { 'x-qwen-client-id': 'a, b' }), 400, 'invalid_client_id'],
  [
    'a form',
    at('POST', '/prompt', 'prompt=x', { 'content-type': 'application/x-www-form-urlencoded' }),
    415,
    'unsupported_media_type',
  ],
  [
    'JSON as a text',
    at('POST', '/prompt', JSON.stringify({ prompt: [] }), { 'content-type': 'text/plain' }),
    415,
    'unsupported_media_type',
  ],
  ['JSON as nothing', vote(JSON.stringify(SUBMIT), {}), 415, 'unsupported_media_type'],
  [
    'JSON as what only begins like it',
    vote(JSON.stringify(SUBMIT), { 'content-type': 'application/jsonp' }),
    415,
    'unsupported_media_type',
  ],
  ['a Host of another name', at('GET', '/status', undefined, { host: 'evil.example' }), 403, 'host_not_allowed'],
  [
    'a Host that begins like ours',
    at('GET', '/status', undefined, { host: 'localhost.evil.example' }),
    403,
    'host_not_allowed',
  ],
  ['a Host with a path', at('GET', '/status', undefined, { host: 'localhost/x' }), 400, /./],
  [
    'a foreign Origin on a route',
    vote(SUBMIT, { ...JSON_TYPE, origin: 'http://evil.example' }),
    403,
    'origin_not_allowed',
  ],
  [
    'a foreign Origin without a body',
    at('POST', '/cancel', undefined, { origin: 'http://localhost:1' }),
    403,
    'origin_not_allowed',
  ],
  ['the Origin null', at('DELETE', '', undefined, { origin: 'null' }), 403, 'origin_not_allowed'],
  [
    'a foreign Origin on the events',
    at('GET', '/events', undefined, { origin: 'http://evil.example' }),
    403,
    'origin_not_allowed',
  ],
  [
    'a foreign Origin on /health',
    plain('GET', '/health', undefined, { origin: 'http://evil.example' }),
    403,
    'origin_not_allowed',
  ],
  [
    'a foreign preflight',
    at('OPTIONS', '/prompt', undefined, { origin: 'http://evil.example', 'access-control-request-method': 'POST' }),
    403,
    'origin_not_allowed',
  ],
  [
    'a form of another page',
    at('POST', '/cancel', undefined, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }),
    403,
    'origin_not_allowed',
  ],
];

test('[DM-1, DM-5, DM-12, BT-12, K042, K089] hostile requests get a clear error, and the question waits as before', {
  timeout: 60_000,
}, async () => {
  const daemon = await Daemon.start();
  const question = await daemon.ask();
  const { sessionId, events } = question;
  const state = async () => ({
    status: (await daemon.get(`/session/${sessionId}/status`)).body,
    file: daemon.records(sessionId).length,
    events: events.seen.length,
  });
  const before = await state();
  const got: Json[] = [];
  for (const [name, hostile] of TABLE) {
    const [method, path, body, headers] = hostile(question, new URL(daemon.url).port);
    const { status, body: answer } = await daemon.request(method, path, body, headers);
    got.push([
      name,
      status,
      typeof answer.error === 'string' && answer.error !== '' ? (answer.code ?? answer.error) : answer,
    ]);
    expect(JSON.stringify(answer)).not.toMatch(/node_modules|\.ts:|at .*\(/);
  }
  expect(got).toEqual(
    TABLE.map(([name, , status, says]) => [name, status, typeof says === 'string' ? says : expect.stringMatching(/./)]),
  );
  expect(await state()).toEqual(before);
  expect((await daemon.post(`/session/${sessionId}/permission/${question.requestId}`, SUBMIT)).status).toBe(200);
  await events.next('turn_complete');
  expect(daemon.stderr).toBe('');
});

test.each(TABLE.filter(([, , , says]) => says instanceof RegExp && says.source !== '.'))(
  '[DM-1, BT-12] what is wrong is named: %s',
  { timeout: 10_000 },
  async (_name, hostile, _status, says) => {
    const [method, path, body, headers] = hostile({ sessionId: NOBODY, requestId: NOBODY } as Question, '');
    const app = createApp({} as Bridge, OPEN, createLog('silent'), '0');
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await app.request(`http://localhost${path}`, {
      method,
      ...(text !== undefined && { body: text }),
      headers: typeof body === 'string' ? headers : { ...JSON_TYPE, ...headers },
    } as RequestInit);
    expect(((await answer.json()) as Json).error).toMatch(says);
  },
);

const OPEN = { hostname: '127.0.0.1', token: undefined, requireAuth: false, allowOrigins: [] };

test('[DM-7, K042] a vote does not reach another session', async () => {
  const daemon = await Daemon.start();
  const first = await daemon.ask();
  const second = await daemon.ask();
  const crossed = await daemon.post(`/session/${second.sessionId}/permission/${first.requestId}`, SUBMIT);
  expect(crossed.status).toBe(404);
  for (const { sessionId, requestId } of [first, second]) {
    const { body } = await daemon.get(`/session/${sessionId}/status`);
    expect(body.pendingInteractions).toMatchObject([{ requestId }]);
  }
});

test.each<[string, Json]>([
  ['at the root', { [RESTORE]: true, [CONTINUE]: true, [SUPPRESS]: true }],
  ['in every depth', { nested: { [RESTORE]: true }, list: [{ [CONTINUE]: true }] }],
  ['with prototypes', JSON.parse(`{"__proto__": {"${RESTORE}": true}, "constructor": {"${CONTINUE}": true}}`)],
  [
    'in other spellings',
    {
      [RESTORE.toUpperCase()]: true,
      'qwen.daemon.restore_ask_user_question': true,
      'qwen-code/invocation': { promptId: 'x' },
    },
  ],
])('[DM-5] keys of the daemon that are smuggled into a prompt %s are an ordinary prompt', async (_, meta) => {
  const daemon = await Daemon.start();
  const { body: session } = await daemon.post('/session', { sessionScope: 'thread', _meta: meta });
  const events = await daemon.events(session.sessionId);
  const block = { type: 'text', text: 'x [[plain]]', _meta: meta, annotations: { audience: ['user'], _meta: meta } };
  const body = { prompt: [block], _meta: { ...meta, traceparent: '00-1-2-00' }, meta, ...meta };
  const path = `/session/${session.sessionId}`;
  const { status, body: admitted } = await daemon.post(`${path}/prompt`, body, session.clientId);
  expect(status).toBe(202);
  const { data } = await events.next('turn_complete');
  expect(data).toMatchObject({ stopReason: 'end_turn', promptId: admitted.promptId });
  const echo = events.seen.find(({ data: { update } }) => update?.sessionUpdate === 'user_message_chunk');
  expect(echo.data.update.content).toEqual({ type: 'text', text: 'x [[plain]]', annotations: { audience: ['user'] } });
  const records = daemon.records(session.sessionId);
  expect(records.filter(({ type }) => type === 'user')).toHaveLength(1);
  expect(JSON.stringify(records)).not.toMatch(/restoreAskUserQuestion|continueLastTurn|suppressRestore/i);
});

test('[DM-5] a cancel reason in a vote is not taken: it is a decline', async () => {
  const daemon = await Daemon.start();
  const { sessionId, requestId, events } = await daemon.ask();
  const meta = { 'qwen.daemon.permissionCancelReason': 'timeout' };
  const body = { outcome: { outcome: 'cancelled', _meta: meta }, _meta: meta };
  expect((await daemon.post(`/session/${sessionId}/permission/${requestId}`, body)).status).toBe(200);
  await events.next('turn_complete');
  const results = daemon.records(sessionId).filter(({ type }) => type === 'tool_result');
  expect(results).toHaveLength(1);
});

test('[DM-12] a body over 10 MiB is refused, with a length or without', async () => {
  const daemon = await Daemon.start();
  const { sessionId } = await daemon.ask();
  const path = `/session/${sessionId}/prompt`;
  // A little over: the rest of a refused body is thrown away for half a second, and then the connection ends.
  const big = `{"prompt":"${'x'.repeat(10 * 1024 * 1024)}"}`;
  const answer = await send(`${daemon.url}${path}`, 'POST', big, { ...JSON_TYPE, 'transfer-encoding': 'chunked' });
  expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large', maxBytes: 10 * 1024 * 1024 } });
  // A length is believed before anything of the body is there.
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  const told = await raw(Number(new URL(daemon.url).port), `${head}Content-Length: 12582912\r\n\r\n{`);
  expect(told).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":"body_too_large"/);
  expect((await daemon.get('/health')).status).toBe(200);
});

/** Sends bytes as they are; answers all that comes back until the connection ends. */
async function raw(port: number, bytes: string, thenEnd = false): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.on('error', () => {});
  socket.write(bytes, 'latin1');
  if (thenEnd) socket.end();
  await once(socket, 'close');
  return text;
}

test.each<[string, string, RegExp]>([
  [
    'headers without end',
    `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`,
    /^HTTP\/1\.1 431 /,
  ],
  [
    'a header with a line feed in it',
    'GET /health HTTP/1.1\r\nHost: localhost\r\nX-Qwen-Client-Id: a\nX: b\r\nbad\r\n\r\n',
    /^HTTP\/1\.1 400 /,
  ],
  ['no Host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n', /^HTTP\/1\.1 400 /],
  [
    'two lengths',
    'POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    /^HTTP\/1\.1 400 /,
  ],
  [
    'a length and chunks',
    'POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    /^HTTP\/1\.1 400 /,
  ],
  [
    'another address than the Host',
    'GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    /^HTTP\/1\.1 403 /,
  ],
  ['junk', 'junk\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', /^HTTP\/1\.1 400 /],
])('[DM-12] on the socket: %s', async (_, bytes, expected) => {
  const port = await listening();
  expect(await raw(port, bytes)).toMatch(expected);
});

test('[DM-12] a body or headers that do not come end the connection with 408', async () => {
  const port = await listening({ headersTimeoutMs: 100, requestTimeoutMs: 200 });
  const body =
    'POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  expect(await raw(port, 'GET /health HTTP/1.1\r\nHost: loc')).toMatch(/^HTTP\/1\.1 408 /);
  expect(await raw(port, body)).toMatch(/^HTTP\/1\.1 408 /);
});

test('[DM-12] no more connections than there may be', async () => {
  const port = await listening(undefined, 1);
  const first = connect(port, '127.0.0.1');
  await once(first, 'connect');
  expect(await raw(port, 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('');
  first.destroy();
});

async function listening(limits?: Parameters<typeof createHttpServer>[2], connections = 10): Promise<number> {
  const bridge = { health: () => ({ status: 'ok' }) } as unknown as Bridge;
  const server = createHttpServer(createApp(bridge, OPEN, createLog('silent'), '0'), connections, limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as { port: number }).port;
}
