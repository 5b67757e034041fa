import type { Chat } from './chat.ts';
import type { CommandServices } from './command-turn.ts';
import { commandOf } from './commands.ts';
import type { DanglingCall } from './dangling.ts';
import { recoveredAgentNotice, type Whereabouts, worktreeNotice } from './notices.ts';
import { fileHistorySnapshotRecord, type RecordDraft, userRecord } from './records.ts';
import { titleEvent } from './summary.ts';
import type { PromptRequest } from './tracked-turn.ts';
import { recordQueue, runCalls, runModelLoop, type TurnOutcome } from './turn.ts';
import type { TurnHost } from './turn-host.ts';

/** A turn that asks nothing again: a prompt, a command, or going on with what was interrupted. */
export async function beginTurn(
  host: TurnHost,
  request: PromptRequest,
  services: Omit<CommandServices, 'daemonPromptId'>,
): Promise<TurnOutcome> {
  const command = request.kind === 'prompt' ? commandOf(request.parts) : undefined;
  if (command !== undefined) {
    const { runCommand } = await import('./command-turn.ts');
    return await runCommand(host, command, { ...services, daemonPromptId: request.invocation?.promptId });
  }
  const { chat } = host;
  const drafts: RecordDraft[] = [...(await chat.closings())];
  if (request.kind === 'prompt') {
    const message = { role: 'user', parts: [...request.parts] };
    drafts.push(userRecord(chat.context, message, request.invocation?.promptId));
  }
  drafts.push(fileHistorySnapshotRecord(chat.context, host.promptId));
  await chat.append(drafts, { durable: false });
  if (request.kind === 'prompt' && (await chat.history()).userTurns === 1)
    await host.say(() => titleEvent(request.parts));
  return await runModelLoop(host);
}

/** A restore: asks the open calls again and goes on with their turn. `tell` is given what the model is to be told with them. */
export async function askAgain(
  host: TurnHost,
  calls: readonly DanglingCall[],
  gitBranch: (cwd: string) => string | undefined,
  tell: (notices: readonly string[]) => void,
): Promise<TurnOutcome> {
  const { chat } = host;
  // Another process may have answered since the load: nobody is asked for what could not be written.
  await chat.store.verify();
  // Before the answers, which are written where the session is now.
  const { whereabouts } = chat;
  const next = await runCalls(host, calls, true);
  if (next !== 'model') return next;
  // Before the queue, whose words would look like the beginning of a new turn.
  tell(await whatChanged(chat, whereabouts, gitBranch(chat.cwd)));
  await recordQueue(host);
  return await runModelLoop(host);
}

async function whatChanged(chat: Chat, before: Whereabouts, gitBranch: string | undefined): Promise<readonly string[]> {
  const { contents } = await chat.history();
  const notices = [worktreeNotice(before, { cwd: chat.cwd, gitBranch }), recoveredAgentNotice(contents)];
  return notices.filter((notice) => notice !== undefined);
}
