import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import { getRequestListener } from '@hono/node-server';
import { type Transport, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { buildSync } from 'esbuild';
import { createTestServer } from './mcp-tools.ts';

/** Bundles a program of this folder, such as the test server, into another one; answers its path. */
export function bundleProgram(name: 'mcp-stdio' | 'mcp-host', folder: string): string {
  const outfile = join(folder, `${name}.mjs`);
  buildSync({
    entryPoints: [join(import.meta.dirname, `${name}.ts`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // What it brings along is CommonJS in part.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  });
  return outfile;
}

/** The program as a client gives it in `session/new`. */
export function stdioServer(program: string, name = 'test', env: Readonly<Record<string, string>> = {}): McpServer {
  const variables = Object.entries(env).map(([key, value]) => ({ name: key, value }));
  return { name, command: process.execPath, args: [program], env: variables };
}

export interface HttpMcp {
  readonly url: string;
  readonly seen: readonly { readonly method: string; readonly headers: IncomingHttpHeaders }[];
  /** Forgets all sessions, as a restart does. */
  forget(): void;
  /** Cuts every connection. */
  cut(): void;
  close(): Promise<void>;
}

/** The test server behind streamable HTTP on loopback, with sessions. */
export async function startHttpMcp(): Promise<HttpMcp> {
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const answer = async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    const known = transports.get(id ?? '');
    if (known) return known.handleRequest(request);
    if (id !== null) return new Response('no such session', { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (sessionId) => void transports.set(sessionId, transport),
      onsessionclosed: (sessionId) => void transports.delete(sessionId),
    });
    await createTestServer().connect(transport);
    return transport.handleRequest(request);
  };
  return listen(getRequestListener(answer), () => transports.clear());
}

/** The test server behind the older pair of a stream of events and posted messages. */
export function startSseMcp(): Promise<HttpMcp> {
  let inbound: Transport['onmessage'];
  return listen((request, response) => {
    if (request.method === 'POST') {
      let body = '';
      request.setEncoding('utf8').on('data', (piece) => {
        body += piece;
      });
      request.on('end', () => {
        response.writeHead(202).end();
        inbound?.(JSON.parse(body));
      });
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: endpoint\ndata: /messages\n\n');
    const transport: Transport = {
      start: async () => {},
      close: async () => void response.end(),
      send: async (message) => void response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
    };
    void createTestServer()
      .connect(transport)
      .then(() => {
        inbound = transport.onmessage;
      });
  });
}

/** Sends everybody elsewhere. */
export async function startRedirect(): Promise<HttpMcp & { to(url: string): void }> {
  let target = '';
  const server = await listen((_, response) => void response.writeHead(307, { location: target }).end());
  return {
    ...server,
    to: (url) => {
      target = url;
    },
  };
}

async function listen(listener: RequestListener, forget = () => {}): Promise<HttpMcp> {
  const seen: { method: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    seen.push({ method: request.method ?? '', headers: request.headers });
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    seen,
    forget,
    cut: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
