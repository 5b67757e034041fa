import type { DanglingCall } from './dangling.ts';
import type { SessionEvent, UnattendedReason } from './ports.ts';
import type { ToolCallResult } from './transcript.ts';

/** How one call ended: what the transcript keeps, the model gets and the client is shown. */
export interface CallResult {
  readonly call: DanglingCall;
  readonly status: ToolCallResult['status'];
  readonly response: { readonly output: string } | { readonly error: string };
  readonly display?: unknown;
  readonly errorType?: string;
  /** Left out: `success` for a success, else `not_started`. */
  readonly executionStatus?: NonNullable<ToolCallResult['executionStatus']>;
  /** Default `native`. */
  readonly toolType?: 'native' | 'mcp';
  readonly terminalId?: string;
  /** Absolute: of the file that was edited. */
  readonly path?: string;
  readonly durationMs: number;
}

/**
 * What became of one call. `stops`: the rest of the batch is not run and the model not called. `unattended`: nobody
 * decided it, or the turn was stopped before it ran.
 */
export type Step =
  | { readonly kind: 'done'; readonly result: CallResult; readonly stops: boolean; readonly changed?: boolean }
  | { readonly kind: 'unattended'; readonly reason: UnattendedReason };

/** `changed`: the call may have changed something, so its result is not to be lost. */
export const done = (result: CallResult, stops: boolean, changed = false): Step => ({
  kind: 'done',
  result,
  stops,
  changed,
});

/** A call that ended in an error; the text is for the model and the client alike. */
export const failure = (call: DanglingCall, error: string, errorType: string, durationMs = 0): CallResult => ({
  call,
  status: 'error',
  response: { error },
  errorType,
  durationMs,
});

/** A call that a person declined or cancelled. */
export const cancelled = (call: DanglingCall, error: string, durationMs = 0): CallResult => ({
  call,
  status: 'cancelled',
  response: { error },
  durationMs,
});

/** Of a result, how far its call got. */
export const executionStatusOf = ({ executionStatus, status }: Pick<CallResult, 'executionStatus' | 'status'>) =>
  executionStatus ?? (status === 'success' ? 'success' : 'not_started');

/** What a client is shown of a result. */
export function resultEvent({ call, status, response, display, terminalId, path }: CallResult): SessionEvent {
  return {
    kind: 'result',
    callId: call.id,
    name: call.name,
    ok: status === 'success',
    text: 'output' in response ? response.output : response.error,
    ...(terminalId !== undefined && { terminalId }),
    ...(path !== undefined && { path }),
    ...(display !== undefined && { display }),
  };
}
