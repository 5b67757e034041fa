import type { QuestionReply } from './ports.ts';
import type { PromptRequest } from './tracked-turn.ts';

/** Whether a turn is a restore that we began of our own accord. */
export const isUnsolicited = (request: PromptRequest): boolean =>
  request.kind === 'restore' && request.unsolicited === true;

/**
 * What a reply counts as when the client had not asked to be asked: its refusal is no person's decline, and its error no
 * failure of the question. Both leave it open.
 */
export function unsolicitedReply(reply: QuestionReply): QuestionReply {
  if (reply.kind !== 'declined' && reply.kind !== 'failed') return reply;
  return { kind: 'unattended', reason: 'dismissed' };
}
