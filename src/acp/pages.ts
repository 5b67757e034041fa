import { type Conversation, readConversation } from '../session/conversation.ts';
import { longestPage, type Page, pageOf } from '../session/page.ts';
import type { SessionEvent } from '../session/ports.ts';
import { type LeftOpen, REPLAYED_SYSTEM, Replay } from '../session/replay.ts';
import type { LoadedReplay } from '../session/sessions.ts';
import { readTailConversation } from '../session/tail.ts';
import type { TranscriptFile } from '../session/transcript-file.ts';
import { collectBulk, type LoadReplay, loadReplay, MAX_BULK, MAX_UPDATES } from './bulk.ts';
import type { LoadUpdatesResult } from './methods.ts';

/** The replay of a bulk load: the last `pageSize` records, or as much of the newest as one response may carry. */
export async function bulkReplay(
  { session, file, left, inFlight, damaged }: LoadedReplay,
  pageSize: number | undefined,
): Promise<LoadReplay> {
  const spoken = inFlight.map((event) => placed(event, session.id));
  if (file === undefined) return loadReplay(await collectBulk(events(spoken), session.cwd), undefined, false);
  const { conversation, page } = await readPage(file, pageSize);
  const shown = await collectBulk(events(spoken, conversation, page, left), session.cwd);
  if (!page.hasMore) damaged(conversation.damage);
  const first = await conversation.recordAt(page.range.from);
  return loadReplay(shown, first?.uuid, page.hasMore);
}

/** The answer to `loadUpdates`: the newest records that fit one response, nothing of what runs finalized. */
export async function replayUpdates(
  { file, left, damaged }: Pick<LoadedReplay, 'file' | 'left' | 'damaged'>,
  cwd: string,
): Promise<LoadUpdatesResult> {
  if (file === undefined) return { updates: [] };
  const { conversation, page } = await readPage(file, undefined);
  const { updates } = await collectBulk(events([], conversation, page, left), cwd);
  if (!page.hasMore) damaged(conversation.damage);
  const first = await conversation.recordAt(0);
  return { updates, ...(first && { startTime: first.timestamp }), lastUpdated: new Date(file.mtimeMs).toISOString() };
}

interface ReadPage {
  readonly conversation: Conversation;
  readonly page: Page;
}

async function readPage(file: TranscriptFile, pageSize: number | undefined): Promise<ReadPage> {
  if (pageSize === undefined) {
    const conversation = await readConversation(file);
    return { conversation, page: longestPage(conversation, MAX_UPDATES, MAX_BULK) };
  }
  const { conversation } = await readTailConversation(file, pageSize);
  return { conversation, page: pageOf(conversation, pageSize) };
}

async function* events(
  inFlight: readonly SessionEvent[],
  conversation?: Conversation,
  page?: Page,
  left?: LeftOpen,
): AsyncGenerator<SessionEvent> {
  if (conversation !== undefined && page !== undefined && left !== undefined) {
    const replay = new Replay(left);
    // A response is one JSON value: every record in it has to be read anyway.
    const wanted = { rawResults: false, system: REPLAYED_SYSTEM };
    for await (const items of conversation.batches(wanted, page.range)) {
      for (const item of items) yield* replay.next(item);
    }
    yield* replay.finish();
  }
  yield* inFlight;
}

/** What is not in the file yet has no record; every update of a response names one. */
function placed(event: SessionEvent, sessionId: string): SessionEvent {
  return { ...event, source: { recordId: `${sessionId}:in-flight`, timestamp: Date.now() } };
}
