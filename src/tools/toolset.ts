import type { McpServer } from '@agentclientprotocol/sdk';
import type { Log } from '../log.ts';
import type { ToolSet } from '../session/ports.ts';

export interface ToolSetOptions {
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly mcpServers: readonly McpServer[];
  readonly log: Log;
}

export async function createToolSet(_: ToolSetOptions): Promise<ToolSet> {
  return { tools: [], async close() {} };
}
