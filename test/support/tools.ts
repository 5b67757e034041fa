import { localFiles } from '../../src/tools/local-files.ts';
import { localShell } from '../../src/tools/local-shell.ts';
import { ToolFault } from '../../src/session/faults.ts';
import type { PreparedCall, Tool, ToolContext, ToolOutput } from '../../src/session/ports.ts';

/** A context on the real disk and the real shell. */
export function toolContext(cwd: string, more: Partial<ToolContext> = {}): ToolContext {
  return {
    sessionId: '00000000-0000-4000-8000-000000000000',
    callId: 'call-1',
    cwd,
    roots: [],
    files: localFiles(),
    shell: localShell(),
    signal: new AbortController().signal,
    progress: () => {},
    ...more,
  };
}

export async function runTool(tool: Tool, args: Record<string, unknown>, context: ToolContext): Promise<ToolOutput> {
  return (await tool.prepare(args, context)).run();
}

/** The fault that a call ends in, checked or run; anything else it throws is thrown. */
export async function faultOfCall(tool: Tool, args: Record<string, unknown>, context: ToolContext): Promise<ToolFault> {
  return faultOf(async () => (await tool.prepare(args, context)).run());
}

export async function faultOf(work: () => Promise<unknown>): Promise<ToolFault> {
  try {
    await work();
  } catch (error) {
    if (error instanceof ToolFault) return error;
    throw error;
  }
  throw new Error('It ended well.');
}

export type { PreparedCall };
