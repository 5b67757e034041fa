import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorCode } from '../error-code.ts';
import type { Log } from '../log.ts';
import { readJsonBody } from './body.ts';
import type { Bridge, ServeOptions } from './ports.ts';
import { DaemonError } from './ports.ts';
import { callerOf, type HttpContext, lastEventIdOf, requestHead, requestIdOf, sessionIdOf } from './request.ts';
import { ROUTES, type Route } from './routes.ts';
import type { Bodies, BodyName } from './schemas.ts';
import { admitRequest, isAllowedOrigin, isLoopbackName, isPreflight, type RequestHead } from './security.ts';
import { EventStreams } from './sse.ts';

export type AppOptions = Pick<ServeOptions, 'hostname' | 'token' | 'requireAuth' | 'allowOrigins'>;

export type App = Hono<{ Bindings: HttpContext['env'] }>;

/** The routes of the daemon. The event stream needs a socket; everything else can be asked without. */
export function createApp(bridge: Bridge, options: AppOptions, log: Log, version: string): App {
  const app: App = new Hono();
  const streams = new EventStreams();
  app.use(async (c, next) => {
    const head = requestHead(c);
    admitRequest(head, options);
    for (const [name, value] of Object.entries(readingHeaders(head, options))) c.header(name, value);
    if (isPreflight(head)) return c.body(null, 204);
    await next();
    return undefined;
  });
  for (const route of ROUTES) app.on(route.method.toUpperCase(), route.path, (c) => answer(c, route, bridge));
  app.get('/session/:id/events', async (c) => {
    const sessionId = sessionIdOf(c);
    callerOf(c);
    const lastEventId = lastEventIdOf(c);
    const snapshot = c.req.query('snapshot') === '1';
    const outgoing = c.env?.outgoing;
    if (outgoing === undefined) throw new DaemonError(501, 'Events need a connection');
    const subscription = await bridge.subscribe(sessionId, {
      ...(lastEventId !== undefined && { lastEventId }),
      snapshot,
    });
    // Not `c.res`: once it exists, Hono makes a response of its own of the one that is returned.
    streams.start(subscription, outgoing, readingHeaders(requestHead(c), options));
    return RESPONSE_ALREADY_SENT;
  });
  app.get('/daemon/status', (c) => c.json(withHttp(bridge, options, streams.open)));
  app.get('/openapi.json', async (c) => {
    const { openApiDocument } = await import('./openapi.ts');
    return c.json(openApiDocument(version));
  });
  app.notFound((c) =>
    c.json({ error: `There is no ${c.req.method} ${c.req.path.slice(0, 200)}`, code: 'not_found' }, 404),
  );
  app.onError((error, c) => answerError(c, error, log));
  return app;
}

async function answer(c: HttpContext, route: Route, bridge: Bridge): Promise<Response> {
  const caller = callerOf(c);
  const has = (name: string) => route.path.includes(`/:${name}`);
  const sessionId = has('id') ? sessionIdOf(c) : '';
  const requestId = has('requestId') ? requestIdOf(c) : '';
  const cwd = has('cwd') ? (c.req.param('cwd') ?? '') : '';
  const body = route.body === undefined ? {} : await bodyOf(c, route.body, requestId === '' ? {} : { requestId });
  const request = { caller, sessionId, requestId, cwd, body };
  const result = await route.run(bridge, request as Parameters<Route['run']>[1]);
  if (route.noStore) c.header('cache-control', 'no-store');
  return route.status === 204 ? c.body(null, 204) : c.json(result as object, route.status);
}

/** `about` is said beside the code of what is wrong. */
async function bodyOf<N extends BodyName>(c: HttpContext, name: N, about: object): Promise<Bodies[N]> {
  const value = await readJsonBody(c);
  const { parseBody } = await import('./bodies.ts');
  const parsed = parseBody(name, value);
  if (!parsed.ok) {
    const { message, code, details } = parsed.fault;
    throw new DaemonError(400, message, code === undefined ? {} : { code, details: { ...about, ...details } });
  }
  return parsed.body;
}

/** Headers that let a page of an allowed origin read the answer, or send the request it has in mind. */
function readingHeaders(head: RequestHead, options: AppOptions): Record<string, string> {
  if (head.origin === undefined || !isAllowedOrigin(head.origin, options)) return {};
  return {
    'access-control-allow-origin': head.origin,
    vary: 'Origin',
    ...(isPreflight(head) && {
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-allow-headers': 'Authorization, Content-Type, Last-Event-ID, X-Qwen-Client-Id',
      'access-control-max-age': '600',
    }),
  };
}

/** What the bridge says of itself, and what only this half knows. */
function withHttp(bridge: Bridge, options: AppOptions, streams: number): Record<string, unknown> {
  const status = bridge.daemonStatus();
  const { protocolVersions, features } = bridge.capabilities();
  return {
    ...status,
    capabilities: { protocolVersions, features },
    security: {
      tokenConfigured: options.token !== undefined,
      requireAuth: options.requireAuth,
      loopbackBind: isLoopbackName(options.hostname),
      allowOriginConfigured: options.allowOrigins.length > 0,
      allowOriginMode: options.allowOrigins.includes('*') ? 'any' : options.allowOrigins.length > 0 ? 'list' : 'none',
      sessionShellCommandEnabled: false,
    },
    runtime: { ...(status['runtime'] as object), transport: { restSseActive: streams } },
  };
}

function answerError(c: HttpContext, error: unknown, log: Log): Response {
  if (!(error instanceof DaemonError)) {
    if (isHangUp(error)) return c.body(null, 400);
    log.error('a request failed unexpectedly', error);
    return c.json({ error: 'Something went wrong in the daemon; its log has more', code: 'internal_error' }, 500);
  }
  const { status, message, code, details, retryAfter } = error;
  if (status >= 500) log.warn('a request failed', error);
  if (retryAfter !== undefined) c.header('retry-after', String(retryAfter));
  if (status === 401) c.header('www-authenticate', 'Bearer');
  return c.json({ error: message, ...(code !== undefined && { code }), ...details }, status as ContentfulStatusCode);
}

/** The client went away while its body was read. */
function isHangUp(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}
