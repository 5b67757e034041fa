import type { ContentBlock } from '@agentclientprotocol/sdk';
import { readPromptMeta } from '../meta/meta.ts';
import type { PromptRequest } from '../session/tracked-turn.ts';
import { promptParts } from './content.ts';
import { RequestError } from './errors.ts';

/** What a prompt asks for. Only a prompt that starts nothing of its own needs content. */
export function promptRequest(blocks: readonly ContentBlock[], meta: unknown, switchedOn: boolean): PromptRequest {
  const { restore, continueLastTurn, invocation } = readPromptMeta(meta);
  const tracked = invocation ? { invocation } : {};
  if (restore && switchedOn) return { kind: 'restore', ...tracked };
  if (continueLastTurn) return { kind: 'continue', ...tracked };
  const parts = promptParts(blocks);
  if (parts.length === 0) {
    throw RequestError.invalidParams([{ path: '/prompt', message: 'has no content; send at least one content block' }]);
  }
  return { kind: 'prompt', parts, ...tracked };
}
