import type { JsonObject } from './params.ts';
import type { ResourceStatus } from './methods.ts';

/** What the daemon asks of a workspace's child; this agent has no skills, and its MCP servers come with each session. */
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
