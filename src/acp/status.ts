import type { Session } from '../session/session.ts';
import { availableCommands } from './commands.ts';
import type { LoadUpdatesResult, ResourceStatus } from './methods.ts';
import type { JsonObject } from './params.ts';

/*
 * What the reference's daemon asks of its child for its status routes. The shapes are those that were seen; this agent has
 * no skills, background tasks or goals, and keeps no statistics of tools.
 */

export const skillsStatus = (cwd: string): JsonObject => ({ v: 1, workspaceCwd: cwd, initialized: true, skills: [] });

export const mcpStatus = (cwd: string): JsonObject => ({
  v: 1,
  workspaceCwd: cwd,
  initialized: true,
  discoveryState: 'completed',
  servers: [],
  clientCount: 0,
  budgetMode: 'off',
  budgets: [],
});

/** CPU time used since the last call, as a share of the time that passed. */
export class ResourceMeter {
  #at = performance.now();
  #cpu = process.cpuUsage();

  read(): ResourceStatus {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const elapsedUs = Math.max(1, (now - this.#at) * 1_000);
    this.#at = now;
    this.#cpu = process.cpuUsage();
    const { rss, heapUsed, heapTotal } = process.memoryUsage();
    return {
      rssBytes: rss,
      cpuPercent: Math.round(((user + system) / elapsedUs) * 1_000) / 10,
      heap: { usedBytes: heapUsed, totalBytes: heapTotal },
    };
  }
}

/** `state` is what a load answers of the session's settings. */
export async function contextStatus(session: Session, state: JsonObject): Promise<JsonObject> {
  const { accepted, interruption } = await session.interruption();
  const recovery = { kind: accepted ? interruption : 'clean', canContinue: accepted };
  return { v: 1, sessionId: session.id, workspaceCwd: session.cwd, recovery, state };
}

export async function statsStatus(session: Session): Promise<JsonObject> {
  const { userTurns } = await session.chat.history();
  return {
    v: 1,
    sessionId: session.id,
    workspaceCwd: session.cwd,
    sessionStartTimeMs: session.startedAt,
    durationMs: Date.now() - session.startedAt,
    promptCount: userTurns,
    models: {},
    sources: [],
    tools: { totalCalls: 0, totalSuccess: 0, totalFail: 0, totalDurationMs: 0, byName: {} },
    files: { totalLinesAdded: 0, totalLinesRemoved: 0 },
    skills: { totalCalls: 0, totalSuccess: 0, totalFail: 0, byName: {} },
  };
}

export const commandsStatus = ({ id }: Session): JsonObject => ({
  v: 1,
  sessionId: id,
  availableCommands: availableCommands(),
});
export const tasksStatus = ({ id }: Session): JsonObject => ({ v: 1, sessionId: id, now: Date.now(), tasks: [] });
export const goalStatus = (_: Session): JsonObject => ({
  snapshot: { v: 2, goal: null, activity: 'idle' },
  active: null,
});

export const transcriptStatus = (sessionId: string, { updates, ...times }: LoadUpdatesResult): JsonObject => ({
  v: 1,
  sessionId,
  events: updates.map((data) => ({ v: 1, type: 'session_update', data })),
  hasMore: false,
  ...times,
});
