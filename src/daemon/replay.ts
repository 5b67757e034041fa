import { RECORD_ID } from '../meta/keys.ts';
import { own } from '../meta/meta.ts';
import type { DaemonEvent } from './ports.ts';

/** A replay as a load answers it. */
export interface Replay {
  readonly compactedReplay: readonly DaemonEvent[];
  readonly hasMore?: boolean;
  readonly anchorRecordId?: string;
}

/** The child's replay as events, numbered from `firstId` on; unnumbered where the session has events of its own. */
export function replayEvents(
  sessionId: string,
  updates: readonly unknown[],
  now: number,
  firstId?: number,
): DaemonEvent[] {
  return updates.map((update, index) => {
    const timestamp = own(update, 'timestamp');
    return {
      ...(firstId !== undefined && { id: firstId + index }),
      v: 1,
      type: 'session_update',
      data: { sessionId, update },
      _meta: { serverTimestamp: typeof timestamp === 'number' ? timestamp : now },
    };
  });
}

/** What of a replay was before `startedAt` (ms): the turn that began then is shown by its own events. */
export function before(updates: readonly unknown[], startedAt: number): readonly unknown[] {
  const first = updates.findIndex((update) => {
    const timestamp = own(update, 'timestamp');
    return typeof timestamp === 'number' && timestamp >= startedAt;
  });
  return first === -1 ? updates : updates.slice(0, first);
}

/** The updates of the last `count` records, and whether there are others before them. */
export function lastRecords(
  updates: readonly unknown[],
  count: number,
): { readonly updates: readonly unknown[]; readonly hasMore: boolean; readonly anchorRecordId?: string } {
  const recordOf = (update: unknown) => own(own(update, '_meta'), RECORD_ID);
  const records = new Set<unknown>();
  let from = updates.length;
  while (from > 0) {
    const record = recordOf(updates[from - 1]);
    if (!records.has(record) && records.size === count) break;
    records.add(record);
    from -= 1;
  }
  const anchor = recordOf(updates[from]);
  return {
    updates: updates.slice(from),
    hasMore: from > 0,
    ...(typeof anchor === 'string' && { anchorRecordId: anchor }),
  };
}
