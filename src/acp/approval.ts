import type { PermissionOption, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { ApprovalReply, ApprovalRequest } from '../session/ports.ts';
import { notOffered, readChoice } from './permission.ts';
import { toolCard } from './tool-cards.ts';
import { toolMeta } from './updates.ts';

const ONCE = 'proceed_once';
const ALWAYS = 'proceed_always';
const REJECT = 'cancel';

/** The `session/request_permission` params of a call that needs approval. An edit shows what it changes. */
export function approvalRequest(request: ApprovalRequest): RequestPermissionRequest {
  const { sessionId, cwd, callId, name, args, change } = request;
  const { title, kind, locations } = toolCard(name, args, cwd);
  return {
    sessionId,
    options: optionsOf(request),
    toolCall: {
      toolCallId: callId,
      status: 'pending',
      title,
      content: change ? [{ type: 'diff', ...change }] : [],
      locations,
      kind,
      rawInput: args,
      _meta: toolMeta(name),
    },
  };
}

function optionsOf({ always }: ApprovalRequest): PermissionOption[] {
  return [
    ...(always ? [{ optionId: ALWAYS, name: `Always allow ${always.label}`, kind: 'allow_always' as const }] : []),
    { optionId: ONCE, name: 'Allow', kind: 'allow_once' },
    { optionId: REJECT, name: 'Reject', kind: 'reject_once' },
  ];
}

/** Reads a client's result. Anything that is neither an offered option nor `cancelled` is a failure, never a consent. */
export function approvalReply({ always }: ApprovalRequest, result: unknown): ApprovalReply {
  const choice = readChoice(result);
  if (choice.kind === 'failed') return choice;
  if (choice.kind === 'cancelled') {
    return choice.reason ? { kind: 'unattended', reason: choice.reason } : { kind: 'rejected' };
  }
  switch (choice.optionId) {
    case ONCE:
      return { kind: 'allowed', always: false };
    case ALWAYS:
      return always ? { kind: 'allowed', always: true } : notOffered(ALWAYS);
    case REJECT:
      return { kind: 'rejected' };
    default:
      return notOffered(choice.optionId);
  }
}
