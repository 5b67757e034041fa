import type { Conversation, Range } from './conversation.ts';
import { ASSISTANT, SYSTEM, TOOL_RESULT, USER } from './record-bytes.ts';

/** The newest stretch of a conversation that is shown at once. */
export interface Page {
  readonly range: Range & { readonly from: number };
  /** Whether the conversation begins before it. */
  readonly hasMore: boolean;
}

/**
 * A page of about the last `size` records. It begins with the first message of a person among them, else with one not
 * further before them than they are many, else with the first of them, or with the call that this one answers.
 */
export function pageOf(conversation: Conversation, size: number): Page {
  const first = Math.max(0, conversation.length - size);
  const from = first === 0 && conversation.complete ? 0 : startOf(conversation, first, size);
  return { range: { from }, hasMore: from > 0 || !conversation.complete };
}

function startOf(conversation: Conversation, first: number, size: number): number {
  for (let at = first; at < conversation.length; at++) if (conversation.typeAt(at) === USER) return at;
  for (let at = first - 1; at >= Math.max(0, first - size); at--) if (conversation.typeAt(at) === USER) return at;
  let from = first;
  if (from < conversation.length && conversation.typeAt(from) === TOOL_RESULT) {
    while (from > 0 && conversation.typeAt(from) !== ASSISTANT) from--;
  }
  return from;
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
