import type { Content } from '@google/genai';

/** Where a session was recorded, and where it runs now. */
export interface Whereabouts {
  readonly cwd: string | undefined;
  readonly gitBranch: string | undefined;
}

/** Tells the model that the workspace is not the one in which it asked; undefined where nothing is known to differ. */
export function worktreeNotice(recorded: Whereabouts, now: Whereabouts): string | undefined {
  const changes: string[] = [];
  if (recorded.cwd !== undefined && now.cwd !== undefined && recorded.cwd !== now.cwd) {
    changes.push(`the working directory was ${recorded.cwd} and is now ${now.cwd}`);
  }
  if (recorded.gitBranch !== undefined && recorded.gitBranch !== now.gitBranch) {
    changes.push(`the git branch was ${recorded.gitBranch} and is now ${now.gitBranch ?? 'none'}`);
  }
  if (changes.length === 0) return undefined;
  return `Note: since this turn began, ${changes.join(', and ')}. Look at files again before you rely on what you read.`;
}

const BACKGROUND_FLAGS = ['is_background', 'run_in_background'];

/**
 * Tells the model which background work of the unfinished turn ended with the process that ran it; undefined where there
 * was none. Only the current turn is looked at: what earlier turns started was theirs to end.
 */
export function recoveredAgentNotice(history: readonly Content[]): string | undefined {
  const from = history.findLastIndex(({ role, parts }) => role === 'user' && parts?.some(({ text }) => text));
  const started = history
    .slice(from + 1)
    .flatMap(({ parts }) => parts ?? [])
    .flatMap(({ functionCall }) =>
      functionCall && BACKGROUND_FLAGS.some((f) => functionCall.args?.[f] === true) ? [functionCall] : [],
    );
  if (started.length === 0) return undefined;
  const names = started.map(({ name, args }) => (typeof args?.['command'] === 'string' ? args['command'] : name));
  return `Note: the agent was restarted during this turn. Background work that it had started has ended: ${names.join('; ')}.`;
}
