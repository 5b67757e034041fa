import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { SessionEvent } from '../session/ports.ts';
import { MAX_LINE, readRawResult } from './frames.ts';
import { bulkUpdate, sessionUpdate } from './updates.ts';

/** The most updates that one response carries. */
export const MAX_UPDATES = 10_000;
/** Bytes of JSON that its updates may take; the rest of the line is left to the rest of the response. */
export const MAX_BULK = MAX_LINE - (1 << 20);

export interface BulkUpdates {
  readonly updates: readonly SessionUpdate[];
  /** The record of the first update that is left, where older ones had to be cut. */
  readonly cutTo: string | undefined;
}

interface RecordUpdates {
  readonly recordId: string;
  readonly updates: SessionUpdate[];
  bytes: number;
}

/** Collects a replay for one response: of what is too much, the newest whole records are kept. */
export async function collectBulk(events: AsyncIterable<SessionEvent>, cwd: string): Promise<BulkUpdates> {
  const groups: RecordUpdates[] = [];
  const dropped = new Set<string>();
  let oldest = 0;
  let count = 0;
  let bytes = 0;
  for await (const event of events) {
    const read = event.kind === 'raw_result' ? readRawResult(event) : event;
    const { source } = read;
    const update = source && sessionUpdate(read, cwd);
    // A call of a record that was cut has no card here that could be closed.
    if (update === undefined || dropped.has(source!.recordId)) continue;
    const shown = bulkUpdate(update, source!);
    const size = Buffer.byteLength(JSON.stringify(shown)) + 1;
    let group = groups.at(-1);
    if (group?.recordId !== source!.recordId) {
      group = { recordId: source!.recordId, updates: [], bytes: 0 };
      groups.push(group);
    }
    group.updates.push(shown);
    group.bytes += size;
    count++;
    bytes += size;
    while (oldest < groups.length && (count > MAX_UPDATES || bytes > MAX_BULK)) {
      const cut = groups[oldest++]!;
      dropped.add(cut.recordId);
      count -= cut.updates.length;
      bytes -= cut.bytes;
      cut.updates.length = 0;
    }
  }
  const kept = groups.slice(oldest);
  return { updates: kept.flatMap(({ updates }) => updates), cutTo: oldest === 0 ? undefined : kept[0]?.recordId };
}

/** The value of a bulk load's replay key. */
export interface LoadReplay {
  readonly v: 1;
  readonly updates: readonly SessionUpdate[];
  readonly anchorRecordId?: string;
  readonly hasMore?: true;
}

/** The envelope of a bulk replay. `first` is the id of the page's first record, `hasMore` whether records precede it. */
export function loadReplay({ updates, cutTo }: BulkUpdates, first: string | undefined, hasMore: boolean): LoadReplay {
  const anchorRecordId = cutTo ?? first;
  if (cutTo === undefined && !hasMore) return { v: 1, updates };
  return { v: 1, updates, ...(anchorRecordId === undefined ? {} : { anchorRecordId }), hasMore: true };
}
