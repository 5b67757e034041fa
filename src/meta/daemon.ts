import * as key from './keys.ts';
import type { Meta } from './meta.ts';
import { isRecord, own } from './meta.ts';

/** What the daemon puts on its calls to the child, and takes off the child's answers. */

/** `capability` is what the child's environment says, too. */
export function daemonInitializeMeta(heartbeatIntervalMs: number, capability?: string): Meta {
  return {
    ...(capability !== undefined && { [key.PRIVATE_PARENT_CAPABILITY]: capability }),
    [key.ACTIVE_WORK_HEARTBEAT]: {
      v: 1,
      intervalMs: heartbeatIntervalMs,
      categories: ['agent', 'notification', 'shell', 'session', 'workflow'],
    },
    [key.CHANNEL_LIVENESS]: { v: 1 },
  };
}

/** `deadlineMs` is a time since the epoch. */
export function newSessionRequestMeta(request: { readonly sessionId?: string; readonly deadlineMs: number }): Meta {
  return {
    [key.SESSION_INITIALIZATION_DEADLINE_MS]: request.deadlineMs,
    ...(request.sessionId !== undefined && { [key.SESSION_ID]: request.sessionId }),
  };
}

/** `_meta` of a load or resume; undefined when there is nothing to say. */
export function loadRequestMeta(request: {
  readonly bulk: boolean;
  readonly pageSize?: number;
  readonly suppressRestore: boolean;
}): Meta | undefined {
  const meta: Meta = {};
  if (request.suppressRestore) meta[key.SUPPRESS_RESTORE_ASK_USER_QUESTION] = true;
  if (request.bulk) meta[key.LOAD_REPLAY_MODE] = 'bulk';
  if (request.pageSize !== undefined) meta[key.LOAD_REPLAY_PAGE_SIZE] = request.pageSize;
  return Object.keys(meta).length > 0 ? meta : undefined;
}

export interface TrackedPrompt {
  readonly sessionId: string;
  readonly promptId: string;
  readonly originatorClientId?: string;
}

export function promptRequestMeta(kind: 'ordinary' | 'restore' | 'continue', prompt: TrackedPrompt): Meta {
  return {
    ...(kind === 'restore' && { [key.RESTORE_ASK_USER_QUESTION]: true }),
    ...(kind === 'continue' && { [key.CONTINUE_LAST_TURN]: true }),
    [key.INVOCATION]: { version: 1, ...prompt },
  };
}

export type CancelReason = 'agent_cancelled' | 'timeout' | 'session_closed';

/** `_meta` of a permission reply with outcome `cancelled`. */
export function cancelledPermissionMeta(reason: CancelReason): Meta {
  return { [key.PERMISSION_CANCEL_REASON]: reason };
}

/** `_meta` of a request for the list of sessions: as many as a page may have. */
export const listRequestMeta = (): Meta => ({ [key.LIST_SIZE]: 100 });

/** The hint that a question can be asked again, and what else the response said, which a client may see. */
export function takeRestoreHint(meta: unknown): { readonly restorable: boolean; readonly rest: Meta | undefined } {
  const restorable = own(meta, key.RESTORE_ASK_USER_QUESTION) === true;
  if (!isRecord(meta)) return { restorable, rest: undefined };
  const { [key.RESTORE_ASK_USER_QUESTION]: _hint, ...rest } = meta;
  return { restorable, rest };
}

/** The replay in a bulk load's response; undefined where there is none. */
export function readLoadReplay(
  meta: unknown,
): { readonly updates: readonly unknown[]; readonly envelope: Meta } | undefined {
  const envelope = own(meta, key.LOAD_REPLAY);
  const updates = own(envelope, 'updates');
  return isRecord(envelope) && Array.isArray(updates) ? { updates, envelope } : undefined;
}

/** What of an outside caller's `_meta` may go on to the child: trace context, nothing else. */
export function externalMeta(meta: unknown): Meta {
  const passed = key.TRACE_CONTEXT.flatMap((name) => {
    const value = own(meta, name);
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(passed);
}
