import type { McpServer } from '@agentclientprotocol/sdk';
import type { Log } from '../log.ts';
import type { Tool, ToolSet } from '../session/ports.ts';
import { EDIT } from './edit.ts';
import { GLOB } from './glob.ts';
import { grepSearch } from './grep-search.ts';
import { LIST_DIRECTORY } from './list-directory.ts';
import { READ_FILE } from './read-file.ts';
import { RUN_SHELL_COMMAND } from './run-shell-command.ts';
import { todoWrite } from './todo-write.ts';
import { WRITE_FILE } from './write-file.ts';

export interface ToolSetOptions {
  /** The session's folder, absolute. */
  readonly cwd: string;
  readonly mcpServers: readonly McpServer[];
  readonly log: Log;
  /** Of this program, for the servers. */
  readonly version: string;
}

/** The tools of one session: the built-in ones, and those of its MCP servers. A server that fails takes none with it. */
export async function createToolSet({ cwd, mcpServers, log, version }: ToolSetOptions): Promise<ToolSet> {
  const tools: Tool[] = [
    ...[READ_FILE, LIST_DIRECTORY, GLOB, grepSearch(), EDIT, WRITE_FILE, RUN_SHELL_COMMAND],
    todoWrite(),
  ];
  if (mcpServers.length === 0) return { tools, close: async () => {} };
  const { connectMcpServers } = await import('./mcp.ts');
  const mcp = await connectMcpServers(mcpServers, { cwd, log, version });
  return {
    // A server may change its tools while it runs.
    get tools() {
      return [...tools, ...mcp.tools];
    },
    get warnings() {
      return mcp.warnings;
    },
    close: () => mcp.close(),
  };
}
