import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import type { Log, LogLevel } from '../log.ts';
import { type App, createApp } from './app.ts';
import { DaemonBridge } from './bridge.ts';
import { createDaemonLog } from './log.ts';
import type { Bridge, ServeOptions } from './ports.ts';

export interface ServeContext {
  readonly version: string;
  readonly logLevel: LogLevel;
}

/** What is not over by then is cut off, in ms: a stop must not hang. */
const STOP_MS = 4_500;
/** How long answers that are under way may still take once the bridge is down, in ms. */
const LAST_ANSWERS_MS = 300;

/** Listens, and resolves when a signal has ended everything. Rejects when it cannot listen. */
export async function serve(options: ServeOptions, { version, logLevel }: ServeContext): Promise<void> {
  const log = createDaemonLog(logLevel);
  const bridge = new DaemonBridge(options, { log, version });
  const app = createApp(bridge, options, log, version);
  const server = createHttpServer(app, options.maxConnections);
  const stopping = stopOnSignals();
  const { address, port, family } = await listen(server, options);
  const host = family === 'IPv6' ? `[${address}]` : address;
  // Whoever started the daemon may have closed the other ends; it serves on.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  process.stdout.write(`qwen-acp serve listening on http://${host}:${port}\n`);
  process.on('unhandledRejection', (reason) => log.error('unhandled rejection', reason));
  // Both before the first call needs them, and after the first that only asks whether the daemon is there.
  bridge.warmUp();
  await import('./bodies.ts');
  await stopping;
  await Promise.race([stop(server, bridge, log), delay(STOP_MS)]);
  process.exit(0);
}

/** The limits that a stranger meets before any route does; a body that is not there in time ends its connection. */
export interface HttpLimits {
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

const LIMITS: HttpLimits = { headersTimeoutMs: 10_000, requestTimeoutMs: 60_000 };

export function createHttpServer(app: App, maxConnections: number, limits: HttpLimits = LIMITS): Server {
  const server = createServer(
    {
      maxHeaderSize: 16 * 1024,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: Math.min(2_000, limits.headersTimeoutMs),
      keepAliveTimeout: 30_000,
      noDelay: true,
    },
    getRequestListener(app.fetch, { errorHandler: () => new Response(MALFORMED, { status: 400, headers: JSON_TYPE }) }),
  );
  server.maxConnections = maxConnections;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const [line, words] = CLIENT_ERRORS[error.code ?? ''] ?? ['400 Bad Request', 'The request is malformed'];
    const body = JSON.stringify({ error: words });
    socket.end(
      `HTTP/1.1 ${line}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
  return server;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const MALFORMED = JSON.stringify({ error: 'The request is malformed' });
const CLIENT_ERRORS: Readonly<Record<string, readonly [line: string, words: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request took too long to arrive'],
};

async function listen(server: Server, { port, hostname }: ServeOptions): Promise<AddressInfo> {
  server.listen(port, hostname.replace(/^\[|\]$/g, ''));
  await once(server, 'listening');
  return server.address() as AddressInfo;
}

async function stop(server: Server, bridge: Bridge, log: Log): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await bridge.shutdown().catch((error: unknown) => log.error('the agent process did not end well', error));
  server.closeIdleConnections();
  await Promise.race([closed, delay(LAST_ANSWERS_MS)]);
  server.closeAllConnections();
}

/** Resolves with the first signal; a second one ends the process at once. */
function stopOnSignals(): Promise<void> {
  return new Promise((resolve) => {
    let signalled = false;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (signalled && signal === 'SIGINT') process.exit(130);
        signalled = true;
        resolve();
      });
    }
  });
}
