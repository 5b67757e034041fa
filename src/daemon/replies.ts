import type { RequestPermissionResponse } from '@agentclientprotocol/sdk';
import { cancelledPermissionMeta } from '../meta/daemon.ts';
import type { PendingInteraction, Resolution, Vote } from './ports.ts';
import { declines } from './votes.ts';

/** What the child is sent: the protocol's response, and the answers beside its outcome. */
export type PermissionReply = RequestPermissionResponse & {
  readonly answers?: Readonly<Record<string, string | readonly string[]>>;
};

/** What subscribers of a session get to know; numbered and stamped by whoever publishes it. */
export interface InteractionEvent {
  readonly sessionId: string;
  readonly type:
    | 'permission_request'
    | 'permission_partial_vote'
    | 'permission_resolved'
    | 'permission_already_resolved'
    | 'permission_forbidden';
  readonly promptId: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  /** The client that caused the event, where it is known. */
  readonly originatorClientId: string | undefined;
}

/** Reasons of an end that no person decided. */
export type UnattendedReason = Extract<Resolution, { kind: 'unattended' }>['reason'];

export type Outcome = RequestPermissionResponse['outcome'];

/** The event that asks. */
export function requestEvent(pending: PendingInteraction): InteractionEvent {
  const { requestId, sessionId, request } = pending;
  const data = { requestId, sessionId, toolCall: request.toolCall, options: request.options };
  return eventOf('permission_request', pending, data, pending.originatorClientId);
}

/** The event that says how it ended; what was answered is not told. */
export function resolvedEvent(pending: PendingInteraction, resolution: Resolution): InteractionEvent {
  const voterClientId = resolution.kind === 'voted' ? resolution.voterClientId : undefined;
  const reason = reasonOf(resolution);
  const data = {
    requestId: pending.requestId,
    outcome: outcomeOf(resolution),
    ...(voterClientId !== undefined && { voterClientId }),
    ...(reason !== undefined && { reason }),
  };
  return eventOf('permission_resolved', pending, data, voterClientId);
}

export function outcomeOf(resolution: Resolution): Outcome {
  return resolution.kind === 'voted' && resolution.vote.kind === 'selected'
    ? { outcome: 'selected', optionId: resolution.vote.optionId }
    : { outcome: 'cancelled' };
}

/** Why nobody's answer came of it; undefined for an answer. */
export function reasonOf(resolution: Resolution): string | undefined {
  switch (resolution.kind) {
    case 'voted':
      return declines(resolution.vote) ? 'declined' : undefined;
    case 'unattended':
      return resolution.reason;
    case 'withdrawn':
      return 'withdrawn';
  }
}

export function replyTo(vote: Vote): PermissionReply {
  if (vote.kind === 'cancelled') {
    return { outcome: { outcome: 'cancelled' }, _meta: cancelledPermissionMeta('agent_cancelled') };
  }
  const { optionId, answers } = vote;
  return { outcome: { outcome: 'selected', optionId }, ...(answers && { answers }) };
}

export const unattendedReply = (reason: UnattendedReason): PermissionReply => ({
  outcome: { outcome: 'cancelled' },
  _meta: cancelledPermissionMeta(reason),
});

export function eventOf(
  type: InteractionEvent['type'],
  { sessionId, promptId }: Pick<PendingInteraction, 'sessionId' | 'promptId'>,
  data: InteractionEvent['data'],
  originatorClientId: string | undefined,
): InteractionEvent {
  return { sessionId, type, promptId, data, originatorClientId };
}
