import { own, readQuestionMeta } from '../meta/meta.ts';
import type { SessionEntry } from './entry.ts';
import { daemonEvent } from './events.ts';
import type { DaemonEvent, PendingInteraction } from './ports.ts';

type Json = Record<string, unknown>;

/** What the status route and the session list say of a live session. */
export function sessionStatus(entry: SessionEntry, pending: readonly PendingInteraction[]): Json {
  const { updatedAt, displayName, hasRunningBackgroundTasks } = entry;
  return {
    sessionId: entry.sessionId,
    workspaceCwd: entry.cwd,
    createdAt: entry.createdAt,
    ...(updatedAt !== undefined && { updatedAt }),
    ...(displayName !== undefined && { displayName }),
    clientCount: entry.clients.size,
    hasActivePrompt: !entry.queue.isIdle,
    activeWorkState: activeWorkState(entry),
    ...(hasRunningBackgroundTasks !== undefined && { hasRunningBackgroundTasks }),
    isWaitingForPermission: pending.some(({ kind }) => kind === 'permission'),
    isWaitingForUserQuestion: pending.some(({ kind }) => kind === 'user_question'),
    pendingInteractionCount: pending.length,
    hasTurnError: entry.hasTurnError,
    pendingInteractions: pending.map(interactionView),
  };
}

/** A live session in the list, called as its transcript says where nothing else is known. */
export function titled(status: Json, title: string | null | undefined): Json {
  if (typeof title !== 'string' || status['displayName'] !== undefined) return status;
  return { ...status, displayName: title };
}

/** A session that is only on disk, in the same fields. */
export function savedStatus(saved: { readonly sessionId: string; readonly cwd: string } & Json): Json {
  const { sessionId, cwd, updatedAt, title } = saved;
  return {
    sessionId,
    workspaceCwd: cwd,
    ...(typeof updatedAt === 'string' && { updatedAt }),
    ...(typeof title === 'string' && { displayName: title }),
    clientCount: 0,
    hasActivePrompt: false,
    isWaitingForPermission: false,
    isWaitingForUserQuestion: false,
    pendingInteractionCount: 0,
    hasTurnError: false,
    pendingInteractions: [],
  };
}

/** `unsupported`: the child does not report its work; `unknown`: it has not yet. */
function activeWorkState(entry: SessionEntry): 'active' | 'idle' | 'unknown' | 'unsupported' {
  if (!entry.isIdle) return 'active';
  if (!entry.channel.reportsActiveWork) return 'unsupported';
  return entry.holds === undefined ? 'unknown' : 'idle';
}

function interactionView({ requestId, kind, createdAt, request }: PendingInteraction): Json {
  const { title } = request.toolCall;
  const questions = readQuestionMeta(request.toolCall._meta);
  return {
    requestId,
    kind,
    createdAt: new Date(createdAt).toISOString(),
    ...(typeof title === 'string' && { title }),
    ...(questions && {
      questions: questions.map((question, index) => ({ ...(question as object), answerKey: String(index) })),
    }),
    options: request.options.map(({ optionId, name, kind: effect }) => ({ optionId, label: name, kind: effect })),
  };
}

/** A session's settings, for a subscriber that asks for them. */
export function snapshotEvent({ sessionId, state }: SessionEntry): DaemonEvent {
  const model = own(state['models'], 'currentModelId');
  const mode = own(state['modes'], 'currentModeId');
  return daemonEvent('session_snapshot', {
    sessionId,
    ...(typeof model === 'string' && { currentModelId: model }),
    ...(typeof mode === 'string' && { currentApprovalMode: mode }),
    recordingDegraded: false,
  });
}
