import { SessionFault } from '../session/faults.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Connection } from './connection.ts';
import * as methods from './methods.ts';
import { settingsOf } from './modes.ts';
import { replayUpdates } from './pages.ts';
import { absolute, closeLive, liveSession, named } from './session-refs.ts';
import * as status from './status.ts';

export interface ReferenceMethodsDeps {
  readonly connection: Connection;
  readonly sessions: Sessions;
}

/** Serves what the protocol does not have and the reference's daemon asks of its child. */
export function serveReferenceMethods(deps: ReferenceMethodsDeps): void {
  serveSessionMethods(deps);
  serveStatusMethods(deps);
}

function serveSessionMethods({ connection, sessions }: ReferenceMethodsDeps): void {
  const session = (ref: methods.SessionRef) => liveSession(sessions, ref.sessionId);
  connection.onRequest(methods.loadUpdates, (params) => loadUpdates(sessions, params));
  connection.onRequest(methods.continueSession, (ref) => session(ref).interruption());
  connection.onRequest(methods.controlCloseSession, async ({ sessionId }) => {
    await closeLive(sessions, sessionId);
    return { sessionId, closed: true };
  });
  connection.onRequest(methods.branchSession, ({ sessionId, cwd, name }) =>
    named(sessionId, () => sessions.branch(sessionId, absolute(cwd), typeof name === 'string' ? name : undefined)),
  );
  connection.onRequest(methods.copySources, (ref) => {
    session(ref);
    return { warnings: [] };
  });
  connection.onRequest(methods.cancelPendingPrompt, (ref) => ({ cancelled: session(ref).stop('cancel') }));
}

function serveStatusMethods({ connection, sessions }: ReferenceMethodsDeps): void {
  const session = (ref: methods.SessionRef) => liveSession(sessions, ref.sessionId);
  let resources: status.ResourceMeter | undefined;
  connection.onRequest(methods.channelPing, ({ nonce }) => ({ v: 1, nonce }));
  connection.onRequest(methods.workspaceSkills, ({ cwd }) => status.skillsStatus(cwd));
  connection.onRequest(methods.workspaceMcp, ({ cwd }) => status.mcpStatus(cwd));
  connection.onRequest(methods.initializeWorkspaceMcp, () => ({ accepted: true }));
  connection.onRequest(methods.workspaceResource, () => {
    resources ??= new status.ResourceMeter();
    return resources.read();
  });
  connection.onRequest(methods.sessionContext, (ref) => status.contextStatus(session(ref), settingsOf(session(ref))));
  connection.onRequest(methods.sessionContextUsage, async (ref) => {
    const { contextUsage } = await import('./context-usage.ts');
    return await contextUsage(session(ref), ref['detail'] === true);
  });
  connection.onRequest(methods.sessionStats, (ref) => status.statsStatus(session(ref)));
  connection.onRequest(methods.sessionSupportedCommands, (ref) => status.commandsStatus(session(ref)));
  connection.onRequest(methods.sessionTasks, (ref) => status.tasksStatus(session(ref)));
  connection.onRequest(methods.sessionAgents, (ref) => status.tasksStatus(session(ref)));
  connection.onRequest(methods.sessionGoal, (ref) => status.goalStatus(session(ref)));
  connection.onRequest(methods.sessionTranscript, ({ sessionId, cwd }) =>
    named(sessionId, async () => status.transcriptStatus(sessionId, await savedUpdates(sessions, sessionId, cwd))),
  );
}

async function loadUpdates(
  sessions: Sessions,
  { sessionId, cwd }: methods.LoadUpdatesParams,
): Promise<methods.LoadUpdatesResult> {
  try {
    return await savedUpdates(sessions, sessionId, cwd);
  } catch (error) {
    if (error instanceof SessionFault && error.kind === 'unknown_session') return { updates: [] };
    throw error;
  }
}

async function savedUpdates(sessions: Sessions, sessionId: string, cwd: string): Promise<methods.LoadUpdatesResult> {
  return await sessions.peek(sessionId, absolute(cwd), (replay) => replayUpdates(replay, cwd));
}
