import { acpChildExtraArgs } from '../cli/child-args.ts';
import { type ChannelOptions, childScript } from './channel.ts';
import type { ServeOptions } from './ports.ts';

export interface ChildDeps {
  readonly version: string;
  /** Takes the child's stderr, a line at a time; this process's own by default. */
  readonly onChildStderr?: (line: string) => void;
  /** The child's script where `QWEN_CLI_ENTRY` names none; this program's by default. */
  readonly script?: string;
  readonly pingIntervalMs?: number;
}

/** How the daemon's options start its child. */
export function channelOptions(options: ServeOptions, deps: ChildDeps): ChannelOptions {
  const { restoreAskUserQuestion, experimentalLsp, childArgs, cwd, initializeTimeoutMs } = options;
  const { version, pingIntervalMs, onChildStderr, script = process.argv[1] ?? '' } = deps;
  return {
    script: childScript(process.env, script),
    args: [...(acpChildExtraArgs({ experimentalLsp, restoreAskUserQuestion }) ?? []), ...childArgs],
    cwd,
    version,
    initializeTimeoutMs,
    onStderr: onChildStderr ?? ((line) => process.stderr.write(`${line}\n`)),
    ...(pingIntervalMs !== undefined && { pingIntervalMs }),
  };
}
