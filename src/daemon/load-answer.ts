import type * as acp from '@agentclientprotocol/sdk';
import { readLoadReplay, takeRestoreHint } from '../meta/daemon.ts';
import { LOAD_REPLAY } from '../meta/keys.ts';
import type { SessionEntry, SessionState } from './entry.ts';
import type { DaemonEvent } from './ports.ts';
import type { Replay } from './replay.ts';

/** A session that is live now, and what there is to show of it. */
export interface Restored {
  readonly entry: SessionEntry;
  readonly replay: Replay | undefined;
  readonly liveJournal: readonly DaemonEvent[];
  readonly lastEventId: number;
  /** It was live before. */
  readonly attached: boolean;
  /** Under which the caller is attached. */
  readonly clientId: string;
}

/** A response taken apart: the hint and the replay are not for clients. */
export function taken({ _meta, ...settings }: acp.LoadSessionResponse): {
  readonly hint: boolean;
  readonly state: SessionState;
  readonly replay:
    | { readonly updates: readonly unknown[]; readonly page: Pick<Replay, 'hasMore' | 'anchorRecordId'> }
    | undefined;
} {
  const { restorable, rest } = takeRestoreHint(_meta);
  const replay = readLoadReplay(_meta);
  const { [LOAD_REPLAY]: _replay, ...visible } = rest ?? {};
  const { hasMore, anchorRecordId } = replay?.envelope ?? {};
  return {
    hint: restorable,
    state: { ...settings, ...(Object.keys(visible).length > 0 && { _meta: visible }) },
    replay: replay && {
      updates: replay.updates,
      page: {
        ...(typeof hasMore === 'boolean' && { hasMore }),
        ...(typeof anchorRecordId === 'string' && { anchorRecordId }),
      },
    },
  };
}

/** The body of a load's or resume's answer. */
export function loadAnswer(restored: Restored, action: 'load' | 'resume'): Record<string, unknown> {
  const { entry, replay, liveJournal, lastEventId, attached, clientId } = restored;
  const { hasRunningBackgroundTasks } = entry;
  const { compactedReplay = [], hasMore, anchorRecordId } = replay ?? {};
  return {
    sessionId: entry.sessionId,
    workspaceCwd: entry.cwd,
    attached,
    clientId,
    createdAt: entry.createdAt,
    state: entry.state,
    ...(hasRunningBackgroundTasks !== undefined && { hasRunningBackgroundTasks }),
    hasActivePrompt: !entry.queue.isIdle,
    ...(action === 'load' && { compactedReplay, liveJournal }),
    lastEventId,
    eventEpoch: entry.events.epoch,
    ...(action === 'load' && hasMore === true && { historyHasMore: true }),
    ...(action === 'load' && hasMore === true && anchorRecordId && { historyAnchorRecordId: anchorRecordId }),
  };
}
