import { RESTORE_DEADLINE_MS } from './child-loads.ts';
import { MAX_PENDING_PROMPTS } from './entry.ts';
import { EVENT_RING } from './events.ts';
import type { PermissionStrategy, ServeOptions } from './ports.ts';

type Json = Record<string, unknown>;

/** What this daemon can do, in the reference's names for it. The switch for asking again has none. */
const FEATURES = [
  'health',
  'daemon_status',
  'capabilities',
  'session_create',
  'session_id_override',
  'session_scope_override',
  'session_load',
  'session_resume',
  'session_list',
  'session_prompt',
  'session_cancel',
  'session_continue',
  'session_branch',
  'session_close',
  'session_status',
  'session_events',
  'session_permission_vote',
  'permission_vote',
  'client_identity',
  'client_heartbeat',
] as const;

export function capabilities(options: ServeOptions, version: string): Json {
  return {
    v: 1,
    protocolVersions: { current: 'v1', supported: ['v1'] },
    qwenCodeVersion: version,
    mode: 'http-bridge',
    features: FEATURES,
    modelServices: [],
    workspaceCwd: options.cwd,
    transports: ['rest'],
    policy: { permission: strategyOf(options) },
    limits: {
      maxRegisteredWorkspaces: 1,
      maxSessionsPerWorkspace: options.maxSessions,
      maxTotalSessions: options.maxSessions,
      maxPendingPromptsPerSession: MAX_PENDING_PROMPTS,
      sessionRestoreTimeoutMs: RESTORE_DEADLINE_MS,
    },
  };
}

/** What runs in the daemon at this moment. */
export interface Runtime {
  readonly sessions: number;
  readonly startingSessions: number;
  readonly pendingPermissions: number;
  readonly channelLive: boolean;
  readonly activePrompts: number;
  readonly queuedPrompts: number;
}

/** What `/daemon/status` says, but for the HTTP half's own part of it. */
export function daemonStatus(options: ServeOptions, version: string, runtime: Runtime): Json {
  const { pendingPermissions: pending } = runtime;
  const message = `${pending} permission request(s) wait for an answer.`;
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  return {
    v: 1,
    detail: 'summary',
    generatedAt: new Date().toISOString(),
    status: pending > 0 ? 'warning' : 'ok',
    issues: pending > 0 ? [{ code: 'pending_permissions', severity: 'warning', message }] : [],
    daemon: {
      pid: process.pid,
      uptimeMs: Math.round(process.uptime() * 1000),
      mode: 'http-bridge',
      workspaceCwd: options.cwd,
      qwenCodeVersion: version,
    },
    limits: {
      maxSessions: options.maxSessions,
      maxPendingPromptsPerSession: MAX_PENDING_PROMPTS,
      listenerMaxConnections: options.maxConnections,
      eventRingSize: EVENT_RING.maxEvents,
    },
    runtime: {
      sessions: { active: runtime.sessions, admissionInFlight: runtime.startingSessions },
      permissions: { pending, policy: strategyOf(options) },
      channel: { live: runtime.channelLive },
      activity: {
        activePrompts: runtime.activePrompts,
        pendingPrompts: runtime.activePrompts + runtime.queuedPrompts,
        queuedPrompts: runtime.queuedPrompts,
      },
      process: { rss, heapTotal, heapUsed, external, arrayBuffers },
    },
  };
}

export function strategyOf({ permissionStrategy }: ServeOptions): PermissionStrategy {
  return permissionStrategy ?? 'first-responder';
}
