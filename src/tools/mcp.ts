import { setTimeout as delay } from 'node:timers/promises';
import type { McpServer } from '@agentclientprotocol/sdk';
import type { Progress, Tool as RemoteTool } from '@modelcontextprotocol/client';
import type { Log } from '../log.ts';
import type { PreparedCall, Tool, ToolContext, ToolSet } from '../session/ports.ts';
import { toolOutput } from './mcp-content.ts';
import { mcpToolNames, printable } from './mcp-names.ts';
import { ServerConnection } from './mcp-server.ts';

export interface McpOptions {
  /** Where stdio servers are started. Absolute. */
  readonly cwd: string;
  readonly log: Log;
  /** Of this program, for the servers. */
  readonly version: string;
  /** How long the session waits for its servers, in ms; the tools of one that takes longer come when it is there. */
  readonly waitMs?: number;
  /** How long a server may take until it has named its tools, in ms. */
  readonly startTimeoutMs?: number;
  /** How long a call may go on without a sign of life, and how long at all, in ms. */
  readonly callTimeoutMs?: number;
  readonly callTotalMs?: number;
}

/** `tools` is read anew for each turn: servers change theirs, and slow ones come late. */
export interface McpToolSet extends ToolSet {
  /** For the person: one sentence for each server that has no tools to offer now because it failed. */
  readonly warnings: readonly string[];
}

const MINUTE_MS = 60_000;
const DEFAULTS = {
  waitMs: 10_000,
  startTimeoutMs: MINUTE_MS,
  callTimeoutMs: 10 * MINUTE_MS,
  callTotalMs: 60 * MINUTE_MS,
} as const satisfies Partial<McpOptions>;

const MAX_DESCRIPTION = 10_000;
const MAX_PROGRESS = 500;

/**
 * The tools of a session's MCP servers, which start at the same time. Never rejects: a server that fails is a warning, and
 * a call of one that died starts it again or fails with `mcp_tool_error`.
 */
export async function connectMcpServers(servers: readonly McpServer[], options: McpOptions): Promise<McpToolSet> {
  const settings = { ...DEFAULTS, ...options };
  const connections = servers.map((server) => new ServerConnection(server, settings));
  const set = new McpTools(connections);
  const waited = new AbortController();
  const late = delay(settings.waitMs, undefined, { signal: waited.signal }).catch(() => undefined);
  await Promise.race([Promise.all(connections.map((connection) => connection.start())), late]);
  waited.abort();
  return set;
}

interface Offered {
  /** The lists that `tools` was made of, by server. */
  readonly lists: readonly (readonly RemoteTool[])[];
  readonly tools: readonly Tool[];
}

class McpTools implements McpToolSet {
  readonly #connections: readonly ServerConnection[];
  #offered: Offered = { lists: [], tools: [] };

  constructor(connections: readonly ServerConnection[]) {
    this.#connections = connections;
  }

  get tools(): readonly Tool[] {
    const lists = this.#connections.map(({ tools }) => tools);
    if (lists.some((list, index) => list !== this.#offered.lists[index])) {
      this.#offered = { lists, tools: offer(this.#connections) };
    }
    return this.#offered.tools;
  }

  get warnings(): readonly string[] {
    return this.#connections.flatMap(({ name, failure }) =>
      failure === undefined ? [] : [`The MCP server ${printable(name, 60)} is not available: ${failure}`],
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }
}

function offer(connections: readonly ServerConnection[]): Tool[] {
  const all = connections.flatMap((connection) => connection.tools.map((tool) => ({ connection, tool })));
  const names = mcpToolNames(all.map(({ connection, tool }) => ({ server: connection.name, tool: tool.name })));
  return all.map(({ connection, tool }, index) => toTool(names[index]!, connection, tool));
}

function toTool(name: string, connection: ServerConnection, tool: RemoteTool): Tool {
  return {
    declaration: {
      name,
      description: (tool.description ?? tool.title ?? tool.name).slice(0, MAX_DESCRIPTION),
      parametersJsonSchema: tool.inputSchema,
    },
    // Whatever the server's annotations say: they are its own claim, and a claim opens nothing (nor does it in qwen-code).
    effect: 'execute',
    type: 'mcp',
    // The server checks the arguments; its refusal says more than a schema would.
    prepare: async (args, context) => prepared(connection, tool, args, context),
  };
}

function prepared(
  connection: ServerConnection,
  tool: RemoteTool,
  args: Readonly<Record<string, unknown>>,
  context: ToolContext,
): PreparedCall {
  const label = `${printable(tool.name, 80)} of the MCP server ${printable(connection.name, 60)}`;
  return {
    always: { key: `mcp ${JSON.stringify([connection.name, tool.name])}`, label },
    run: async () => {
      const { signal } = context;
      const heard = (progress: Progress) => context.progress(describeProgress(progress));
      return toolOutput(await connection.call({ tool, args, signal, heard }));
    },
  };
}

function describeProgress({ progress, total, message }: Progress): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`;
  return message === undefined ? count : `${count} ${printable(message, MAX_PROGRESS)}`;
}
