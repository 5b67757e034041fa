/** The daemon's options that its child must share. */
export interface ChildFlags {
  readonly experimentalLsp?: boolean;
  readonly restoreAskUserQuestion?: boolean;
}

/** The arguments that the daemon adds after `--acp` when it spawns the child; undefined when there are none. */
export function acpChildExtraArgs(flags: ChildFlags): string[] | undefined {
  const args: string[] = [];
  if (flags.experimentalLsp) args.push('--experimental-lsp');
  if (flags.restoreAskUserQuestion) args.push('--restore-ask-user-question');
  return args.length === 0 ? undefined : args;
}
