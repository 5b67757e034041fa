import type { Conversation, Range } from './conversation.ts';
import type { SessionEvent } from './ports.ts';
import { type LeftOpen, REPLAYED_SYSTEM, Replay } from './replay.ts';

/**
 * What a client is to see of a conversation, in order. A `raw_result` is valid until the next event is asked for.
 * `rawResults` false gives every result with its strings read.
 */
export async function* replay(
  conversation: Conversation,
  left: LeftOpen,
  { rawResults = true, ...range }: Range & { readonly rawResults?: boolean } = {},
): AsyncGenerator<SessionEvent> {
  const play = new Replay(left);
  for await (const batch of conversation.batches({ rawResults, system: REPLAYED_SYSTEM }, range)) {
    for (const item of batch) yield* play.next(item);
  }
  yield* play.finish();
}
