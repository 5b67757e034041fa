import { readConversation } from '../session/conversation.ts';
import { REPLAYED_SYSTEM, Replay } from '../session/replay.ts';
import type { LoadedReplay } from '../session/sessions.ts';
import { FrameBatch, UpdateFrames } from './frames.ts';

/** Bytes that are collected before they are sent. */
const SEND_AT = 192 << 10;

/**
 * Bytes up to which a file's results are parsed and written again: copying them is faster only once V8 has compiled the
 * loops that look at every byte.
 */
const PARSED_WHOLE = 1 << 20;

/** Sends a session's conversation as updates, in order; `send` takes whole lines without the last line feed. */
export async function streamReplay(
  { session, file, left, inFlight, damaged }: LoadedReplay,
  send: (lines: Buffer) => Promise<void>,
): Promise<void> {
  const frames = new UpdateFrames(session.id, session.cwd);
  const batch = new FrameBatch();
  const replay = new Replay(left);
  if (file !== undefined) {
    const conversation = await readConversation(file);
    const rawResults = file.size > PARSED_WHOLE;
    for await (const items of conversation.batches({ rawResults, system: REPLAYED_SYSTEM })) {
      for (const item of items) {
        for (const event of replay.next(item)) frames.append(event, batch);
        if (batch.length >= SEND_AT) await flush(batch, send);
      }
    }
    damaged(conversation.damage);
  }
  for (const event of [...replay.finish(), ...inFlight]) frames.append(event, batch);
  await flush(batch, send);
}

async function flush(batch: FrameBatch, send: (lines: Buffer) => Promise<void>): Promise<void> {
  const lines = batch.take();
  if (lines.length > 0) await send(lines.subarray(0, -1));
}
