import type { ChildOptions } from '../cli/options.ts';

export interface StdioAgentOptions extends ChildOptions {
  readonly version: string;
}

/** Serves the agent on this process's stdio until the client hangs up. */
export async function runStdioAgent(_options: StdioAgentOptions): Promise<void> {
  process.stderr.write('qwen-acp: the stdio agent is not wired up yet.\n');
}
