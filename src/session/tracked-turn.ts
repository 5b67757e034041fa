import type { Part } from '@google/genai';
import type { StopKind } from './batch.ts';
import type { Chat } from './chat.ts';
import { branchCheckpointRecord, type RecordDraft } from './records.ts';
import type { TurnOutcome } from './turn.ts';
import type { StopReason } from './turn-host.ts';
import { type TurnResult, turnResultRecord } from './turn-result.ts';

/** A prompt that a daemon tracks under its own id. */
export interface Invocation {
  readonly promptId?: string;
  readonly originatorClientId?: string;
}

/** What starts a turn: a person's words, the call to go on with an interrupted turn, or to ask open questions again. */
export type PromptRequest = { readonly invocation?: Invocation } & (
  | { readonly kind: 'prompt'; readonly parts: readonly Part[] }
  | { readonly kind: 'continue' }
  /** `unsolicited`: of our own accord; the client has not asked for it. */
  | { readonly kind: 'restore'; readonly unsolicited?: true }
);

/** Where a later branch may start: records by their `uuid`. */
export interface BranchPoint {
  readonly assistantRecordUuid: string;
  readonly checkpointUuid: string;
}

/** When a person cancelled a tracked prompt, in milliseconds since the epoch, and how long it had run. */
export interface PromptCancelled {
  readonly cancelledAt: number;
  readonly elapsedMs: number;
}

/** How a prompt is answered. */
export interface PromptEnd {
  readonly stopReason: StopReason;
  readonly branchPoint?: BranchPoint;
  readonly cancelled?: PromptCancelled;
}

/** What a turn leaves behind beside its conversation: the checkpoint, and the record of how it ended. */
export class TrackedTurn {
  readonly promptId: string;
  readonly #request: PromptRequest;
  readonly #chat: Chat;
  readonly #startExclusive: string | null;
  readonly #startedAt = Date.now();

  constructor(request: PromptRequest, promptId: string, chat: Chat) {
    this.#request = request;
    this.promptId = promptId;
    this.#chat = chat;
    this.#startExclusive = chat.lastUuid;
  }

  /** Records how the turn ended; `stop` is what stopped it. A person's cancel is on disk when it resolves. */
  async end(outcome: TurnOutcome, stop: StopKind | undefined): Promise<PromptEnd> {
    const { stopReason } = outcome;
    if (stopReason === 'cancelled') {
      if (stop !== 'cancel') return { stopReason };
      const cancelledAt = Date.now();
      await this.#append(
        [this.#result({ state: 'cancelled', cancelledAt, leftOpen: outcome.unattended === true })],
        true,
      );
      if (this.#request.invocation === undefined) return { stopReason };
      return { stopReason, cancelled: { cancelledAt, elapsedMs: cancelledAt - this.#startedAt } };
    }
    const { context } = this.#chat;
    const assistant = this.#request.kind === 'restore' ? undefined : outcome.assistantRecord;
    const checkpoint = assistant && branchCheckpointRecord(context, this.#startExclusive, assistant);
    const tracked = this.#request.invocation !== undefined && !outcome.unattended;
    const result = tracked ? [this.#result({ state: 'completed', stopReason }, outcome.commandOutput)] : [];
    await this.#append([...(checkpoint ? [checkpoint] : []), ...result], false);
    if (!checkpoint || !assistant) return { stopReason };
    return { stopReason, branchPoint: { assistantRecordUuid: assistant, checkpointUuid: checkpoint.uuid } };
  }

  /** Records of a daemon's prompt that it failed. */
  async failed(error: unknown): Promise<void> {
    if (this.#request.invocation === undefined) return;
    const message = error instanceof Error ? error.message : String(error);
    await this.#append([this.#result({ state: 'error', message })], false);
  }

  #result(end: TurnResult['end'], commandOutput?: string): RecordDraft {
    const { invocation } = this.#request;
    const last = this.#chat.lastEntry();
    return turnResultRecord(this.#chat.context, {
      promptId: invocation?.promptId ?? this.promptId,
      end,
      startedAt: this.#startedAt,
      promptText: this.#request.kind === 'prompt' ? textOf(this.#request.parts) : '',
      resultText: commandOutput ?? (last?.role === 'model' ? textOf(last.parts ?? []) : ''),
      originatorClientId: invocation?.originatorClientId,
    });
  }

  async #append(drafts: readonly RecordDraft[], durable: boolean): Promise<void> {
    if (drafts.length > 0) await this.#chat.append(drafts, { durable });
  }
}

const textOf = (parts: readonly Part[]): string =>
  parts.flatMap(({ text, thought }) => (text && thought !== true ? [text] : [])).join('');
