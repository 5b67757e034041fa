/** What a load knows when its response is there, and the session's state at that moment. */
export interface RestoreMoment {
  /** The daemon's own switch. */
  readonly switchedOn: boolean;
  /** The client id that the load came with, if any. */
  readonly clientId: string | undefined;
  /** The load is part of a branch. */
  readonly branch: boolean;
  /** The child says that a question can be asked again. */
  readonly hint: boolean;
  readonly promptActive: boolean;
  readonly pendingPromptCount: number;
  readonly goalTurnActive: boolean;
}

export type RefusalReason = 'switched_off' | 'no_client' | 'branch' | 'nothing_open' | 'busy';

/** Whether a question is asked again after a load; undefined when it is. */
export function restoreRefusal(moment: RestoreMoment): RefusalReason | undefined {
  if (!moment.switchedOn) return 'switched_off';
  if (moment.clientId === undefined) return 'no_client';
  if (moment.branch) return 'branch';
  if (!moment.hint) return 'nothing_open';
  if (moment.promptActive || moment.pendingPromptCount > 0 || moment.goalTurnActive) return 'busy';
  return undefined;
}

/** Whether a load is known from its start to ask nothing again, so that the child must open nothing. */
export function suppressesRestore(request: {
  readonly switchedOn: boolean;
  readonly clientId: string | undefined;
  readonly branch: boolean;
}): boolean {
  return request.switchedOn && (request.clientId === undefined || request.branch);
}

/** A load or resume of one session, as far as two at the same time are concerned. */
export interface RestoreRequest {
  readonly action: 'load' | 'resume';
  readonly hasClient: boolean;
  readonly pageSize: number | undefined;
}

/** Two loads share one call to the child only when that call would be the same. */
export function joins(running: RestoreRequest, next: RestoreRequest): boolean {
  return running.action === next.action && running.hasClient === next.hasClient && running.pageSize === next.pageSize;
}
