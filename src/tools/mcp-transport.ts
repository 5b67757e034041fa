import { setTimeout as delay } from 'node:timers/promises';
import type { McpServer } from '@agentclientprotocol/sdk';
import type { Transport } from '@modelcontextprotocol/client';
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio';
import type { Log } from '../log.ts';
import { HttpTransport, sseTransport } from './mcp-http.ts';
import { printable } from './mcp-names.ts';
import { ProcessTransport } from './mcp-process.ts';

/** A way to a server that is not open yet. */
export interface ServerLink {
  readonly transport: Transport;
  /** Takes leave and closes; never rejects. */
  end(): Promise<void>;
  /** The last that the server's program said on stderr or, where that is nothing, out of turn on stdout; may be empty. */
  lastWords(): string;
}

/** Characters of one line of a server's stderr in our log, and of all lines of one run. */
const MAX_LINE = 1000;
const MAX_CHATTER = 200_000;
/** How long a server may take to be told that its HTTP session is over, in ms. */
const FAREWELL_MS = 200;

/** Opens nothing yet. Throws for an address that is none. */
export function linkTo(server: McpServer, cwd: string, log: Log): ServerLink {
  return 'type' in server ? httpLink(server) : stdioLink(server, cwd, log);
}

function stdioLink(server: Exclude<McpServer, { type: string }>, cwd: string, log: Log): ServerLink {
  const label = `MCP server ${printable(server.name, 60)}`;
  let budget = MAX_CHATTER;
  let complaint = '';
  let noise = '';
  const transport = new ProcessTransport({
    command: server.command,
    args: server.args,
    env: { ...getDefaultEnvironment(), ...Object.fromEntries(server.env.map(({ name, value }) => [name, value])) },
    cwd,
    onStderr: (line) => {
      const text = printable(line, MAX_LINE);
      if (text === '') return;
      complaint = text;
      if (budget <= 0) return;
      budget -= text.length;
      log.info(`${label}: ${text}`);
      if (budget <= 0) log.info(`${label}: what more it says on stderr is left out`);
    },
    onNoise: (line) => {
      if (noise === '') log.warn(`${label} writes on stdout what is no message: ${printable(line, MAX_LINE)}`);
      noise = printable(line, MAX_LINE);
    },
  });
  return { transport, end: () => transport.close(), lastWords: () => complaint || noise };
}

function httpLink(server: Extract<McpServer, { type: string }>): ServerLink {
  const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]));
  const url = new URL(server.url);
  if (server.type === 'sse') {
    const transport = sseTransport(url, { headers });
    return { transport, end: () => transport.close().catch(() => undefined), lastWords: () => '' };
  }
  const transport = new HttpTransport(url, { requestInit: { headers } });
  const end = async () => {
    const farewell = transport.terminateSession().catch(() => undefined);
    await Promise.race([farewell, delay(FAREWELL_MS, undefined, { ref: false })]);
    await transport.close().catch(() => undefined);
  };
  return { transport, end, lastWords: () => '' };
}
