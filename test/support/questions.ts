import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { permissionRequest } from '../../src/acp/permission.ts';
import type { Question } from '../../src/session/ports.ts';

export const COLOUR: Question = {
  question: 'Which colour?',
  header: 'Colour',
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
};

export const PARTS: Question = {
  question: 'Which parts?',
  header: 'Parts',
  multiSelect: true,
  options: ['Alpha', 'Beta', 'Gamma'].map((label) => ({ label, description: `part ${label}` })),
};

/** What the child sends to ask. */
export function asking(
  questions: readonly Question[] = [COLOUR],
  { sessionId = 'session-1', callId = 'call-1' }: { readonly sessionId?: string; readonly callId?: string } = {},
): RequestPermissionRequest {
  return permissionRequest({ sessionId, callId, questions, args: { questions }, introduce: false });
}

/** A request for permission that asks no question. */
export const permitting = (sessionId = 'session-1'): RequestPermissionRequest => ({
  sessionId,
  options: [
    { optionId: 'proceed_once', name: 'Allow', kind: 'allow_once' },
    { optionId: 'cancel', name: 'Reject', kind: 'reject_once' },
  ],
  toolCall: { toolCallId: 'call-2', title: 'Run a command', kind: 'execute' },
});
