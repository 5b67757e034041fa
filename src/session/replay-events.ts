import type { Part } from '@google/genai';
import type { CancelledTurn, CommandOutput, EventSource, SessionEvent, UsageMetadata } from './ports.ts';
import { millisecondsOf } from './raw-result.ts';
import { HISTORY_GAP } from './texts.ts';
import type { TranscriptRecord } from './transcript.ts';

/** The events of one record. Texts of one kind that follow each other share the segment of the first. */
export class RecordEvents {
  readonly list: SessionEvent[] = [];
  readonly source: EventSource;
  readonly #prompt: { readonly promptId?: string };
  /** Counts what was emitted, usage and calls included. */
  #count = 0;
  #run: { readonly kind: 'user' | 'text' | 'thought'; readonly segment: number } | undefined;

  constructor(record: TranscriptRecord) {
    this.source = { recordId: record.uuid, timestamp: millisecondsOf(record.timestamp) };
    this.#prompt =
      record.type === 'user' && typeof record.daemonPromptId === 'string' ? { promptId: record.daemonPromptId } : {};
  }

  userPart(part: Part): void {
    if (part.text === '') return;
    if (typeof part.text !== 'string' && part.inlineData === undefined) return;
    const segment = typeof part.text === 'string' ? this.#segment('user') : this.#alone();
    this.list.push({ kind: 'user_part', part, source: { ...this.source, segment, ...this.#prompt } });
  }

  text(text: string, thought: boolean, command?: CommandOutput): void {
    if (text === '') return;
    const segment = this.#segment(thought ? 'thought' : 'text');
    this.list.push({ kind: 'text', text, thought, ...(command && { command }), source: { ...this.source, segment } });
  }

  usage(usage: UsageMetadata): void {
    this.#alone();
    this.list.push({ kind: 'usage', usage, source: this.source });
  }

  call(callId: string, name: string, args: Readonly<Record<string, unknown>>): void {
    this.#alone();
    this.list.push({ kind: 'call', phase: 'recorded', callId, name, args, source: this.source });
  }

  cancelled(turn: CancelledTurn): void {
    this.#alone();
    this.list.push({ kind: 'cancelled', turn, source: this.source });
  }

  #segment(kind: 'user' | 'text' | 'thought'): number {
    const at = this.#count++;
    if (this.#run?.kind !== kind) this.#run = { kind, segment: at };
    return this.#run.segment;
  }

  #alone(): number {
    this.#run = undefined;
    return this.#count++;
  }
}

/** Says where the records before `source` are lost. */
export function gapNotice(source: EventSource): SessionEvent {
  return { kind: 'text', text: HISTORY_GAP, thought: false, source: { ...source, segment: 0 } };
}
