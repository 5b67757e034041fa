import type { Conversation, Range } from './conversation.ts';
import { SYSTEM, USER } from './record-bytes.ts';

/** The newest stretch of a conversation that is shown at once. */
export interface Page {
  readonly range: Range & { readonly from: number };
  /** Whether the conversation begins before it. */
  readonly hasMore: boolean;
}

/** A page of the last `size` records, cut back to the first message of a person among them where there is one. */
export function pageOf(conversation: Conversation, size: number): Page {
  const first = Math.max(0, conversation.length - size);
  let from = first;
  if (first > 0 || !conversation.complete) {
    while (from < conversation.length && conversation.typeAt(from) !== USER) from++;
    if (from === conversation.length) from = first;
  }
  return { range: { from }, hasMore: from > 0 || !conversation.complete };
}

/**
 * The longest page that is worth reading where no size is given: not more messages than updates are allowed, nor much more
 * of the file than bytes. What it shows still has to be cut to both.
 */
export function longestPage(conversation: Conversation, updates: number, bytes: number): Page {
  let from = conversation.length;
  for (let messages = 0, read = 0; from > 0; from--) {
    if (conversation.typeAt(from - 1) === SYSTEM) continue;
    messages++;
    read += conversation.bytesAt(from - 1);
    // An update repeats little of its record beside its text, so it is seldom less than half of it.
    if (messages > updates || read > 2 * bytes) break;
  }
  return { range: { from }, hasMore: from > 0 || !conversation.complete };
}
