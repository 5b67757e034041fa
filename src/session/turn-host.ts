import type { StopKind } from './batch.ts';
import type { Chat } from './chat.ts';
import type { DanglingCall } from './dangling.ts';
import type { Model, Question, QuestionReply, SessionEvent, Tool } from './ports.ts';
import type { ToolHost } from './tool-call.ts';

/** How a turn ended, in ACP's words. */
export type StopReason = 'end_turn' | 'cancelled' | 'max_tokens' | 'refusal' | 'max_turn_requests';

/** Why a turn's signal was aborted. */
export class TurnStopped extends Error {
  readonly kind: StopKind;

  constructor(kind: StopKind) {
    super(`the turn was stopped: ${kind}`);
    this.name = 'TurnStopped';
    this.kind = kind;
  }
}

/** What a turn works on and has shown, but not written yet. */
export interface InFlight {
  readonly calls: readonly DanglingCall[];
  /** What the client was shown, in order. */
  shown(): readonly SessionEvent[];
}

/** What a running turn needs from its session. */
export interface TurnHost extends ToolHost {
  readonly chat: Chat;
  readonly model: Model;
  /** The switch of the process. */
  readonly restoreAskUserQuestion: boolean;
  /** The id of this prompt in records. */
  readonly promptId: string;
  /** A promise is given only when there is something to wait for. */
  emit(event: SessionEvent): Promise<void> | undefined;
  /** Runs `speak` and emits what it gives in one go, so that a load meanwhile shows both or neither. */
  say(speak: () => SessionEvent | undefined): Promise<void> | undefined;
  ask(call: DanglingCall, questions: readonly Question[]): Promise<QuestionReply>;
  /** All but the question. Opened on first use; throws the signal's reason when the turn is stopped before they are. */
  tools(): Promise<readonly Tool[]>;
  drainQueue(): Promise<readonly string[]>;
  /** What the model is to be told once beside the next function responses. */
  takeNotices(): readonly string[];
  /** Those that were taken have reached the model. */
  noticesLanded(): void;
  /** For whoever loads the session meanwhile; undefined when all that was shown is on disk. */
  inFlight: InFlight | undefined;
}

/** A stop that takes the process or the session away: its telemetry would be the only thing written. */
export const endsProcess = (stop: StopKind | undefined): boolean =>
  stop === 'close' || stop === 'shutdown' || stop === 'hangup';

/** What the turn was told to stop by; undefined while it may go on. */
export function stopKindOf(signal: AbortSignal): StopKind | undefined {
  if (!signal.aborted) return undefined;
  return signal.reason instanceof TurnStopped ? signal.reason.kind : 'shutdown';
}

/** Closes the card of a call that has no result of its own. */
export const closedCard = (call: DanglingCall, text: string): SessionEvent => ({
  kind: 'result',
  callId: call.id,
  name: call.name,
  ok: false,
  text,
});
