import { ProviderFault } from '../session/faults.ts';
import type { ModelEvent, ModelFinish, UsageMetadata } from '../session/ports.ts';
import { parseArguments } from './call-arguments.ts';
import type { Reply } from './exchange.ts';
import { StreamedRefusal } from './http-faults.ts';
import type { ProviderPart } from './provider-data.ts';

type Fields = Readonly<Record<string, unknown>>;

/** An event of the Messages API, as far as it is used. */
interface WireEvent {
  readonly type?: string;
  readonly index?: number;
  readonly message?: { readonly id?: string; readonly usage?: Usage };
  readonly content_block?: Fields & { readonly type?: string };
  readonly delta?: Fields & { readonly type?: string; readonly stop_reason?: string | null };
  readonly usage?: Usage;
  readonly error?: { readonly type?: string; readonly message?: string };
}

interface Usage {
  readonly input_tokens?: number | null;
  readonly output_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
  readonly cache_read_input_tokens?: number | null;
  readonly output_tokens_details?: { readonly thinking_tokens?: number } | null;
}

/** A block that is still growing. Text and thoughts are passed on as they come; a call, a signature when it is whole. */
type Block =
  | { readonly kind: 'thinking'; signature: string }
  | {
      readonly kind: 'call';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      json: string;
      readonly fields: Fields;
    }
  | { readonly kind: 'other' };

/** What of one streamed message has come so far. */
export class AnthropicReply implements Reply {
  readonly #blocks = new Map<number, Block>();
  #usage: Usage = {};
  #id: string | undefined;
  #stop: string | undefined;
  #parts = 0;

  take(data: string, heard: ModelEvent[]): boolean {
    const event: WireEvent = JSON.parse(data);
    const before = heard.length;
    switch (event.type) {
      case 'content_block_delta':
        this.#grow(event, heard);
        break;
      case 'content_block_start':
        this.#begin(event, heard);
        break;
      case 'content_block_stop':
        this.#settle(event.index ?? 0, heard);
        break;
      case 'message_start':
        this.#id = event.message?.id;
        this.#count(event.message?.usage);
        break;
      case 'message_delta':
        this.#stop = event.delta?.stop_reason ?? this.#stop;
        this.#count(event.usage);
        break;
      case 'error':
        throw new StreamedRefusal(STATUS[event.error?.type ?? ''] ?? 500, event.error);
    }
    this.#parts += heard.length - before;
    return event.type !== 'message_stop';
  }

  /** Counts in a later event replace those of an earlier one. */
  #count(usage: Usage | undefined): void {
    const known = Object.entries(usage ?? {}).filter(([, value]) => value !== null && value !== undefined);
    this.#usage = { ...this.#usage, ...Object.fromEntries(known) };
  }

  #begin({ index = 0, content_block: block = {} }: WireEvent, heard: ModelEvent[]): void {
    switch (block.type) {
      case 'text':
        say(heard, block['text'], false);
        this.#blocks.set(index, { kind: 'other' });
        break;
      case 'thinking':
        say(heard, block['thinking'], true);
        this.#blocks.set(index, { kind: 'thinking', signature: textOf(block['signature']) });
        break;
      case 'redacted_thinking':
        heard.push(part({ providerData: { provider: 'anthropic', block } }));
        break;
      case 'tool_use': {
        const { type: _, id, name, input, ...fields } = block;
        this.#blocks.set(index, { kind: 'call', id: textOf(id), name: textOf(name), input, json: '', fields });
        break;
      }
    }
  }

  #grow({ index = 0, delta = {} }: WireEvent, heard: ModelEvent[]): void {
    const block = this.#blocks.get(index);
    switch (delta.type) {
      case 'text_delta':
        say(heard, delta['text'], false);
        break;
      case 'thinking_delta':
        say(heard, delta['thinking'], true);
        break;
      case 'signature_delta':
        if (block?.kind === 'thinking') block.signature += textOf(delta['signature']);
        break;
      case 'input_json_delta':
        if (block?.kind === 'call') block.json += textOf(delta['partial_json']);
        break;
    }
  }

  #settle(index: number, heard: ModelEvent[]): void {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (block?.kind === 'thinking' && block.signature !== '') {
      const thoughtSignature = block.signature;
      heard.push(part({ text: '', thought: true, thoughtSignature, providerData: { provider: 'anthropic' } }));
    } else if (block?.kind === 'call') {
      const { id, name, input, json, fields } = block;
      const args = parseArguments(json === '' ? JSON.stringify(input ?? {}) : json);
      const extra = Object.keys(fields).length > 0 && ({ providerData: { provider: 'anthropic', fields } } as const);
      heard.push(part({ functionCall: { ...(id !== '' && { id }), name, args }, ...extra }));
    }
  }

  end(): readonly ModelEvent[] {
    const heard: ModelEvent[] = [];
    for (const index of [...this.#blocks.keys()]) this.#settle(index, heard);
    this.#parts += heard.length;
    const reason = this.#reason();
    heard.push({ kind: 'usage', usage: usageOf(this.#usage) });
    heard.push({ kind: 'finish', reason, ...(this.#id !== undefined && { responseId: this.#id }) });
    return heard;
  }

  #reason(): ModelFinish {
    switch (this.#stop) {
      case undefined:
        throw new ProviderFault('broken_stream', 'The model stopped in the middle of its reply.');
      case 'refusal':
        return 'refusal';
      case 'max_tokens':
      case 'model_context_window_exceeded':
        return 'max_tokens';
    }
    if (this.#parts === 0) throw new ProviderFault('empty_reply', `The model replied with nothing (${this.#stop}).`);
    return 'stop';
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const part = (value: ProviderPart): ModelEvent => ({ kind: 'part', part: value });

function say(heard: ModelEvent[], text: unknown, thought: boolean): void {
  if (typeof text === 'string' && text !== '') heard.push(part(thought ? { text, thought } : { text }));
}

function usageOf(usage: Usage): UsageMetadata {
  const cached = usage.cache_read_input_tokens ?? 0;
  const prompt = (usage.input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0) + cached;
  const output = usage.output_tokens ?? 0;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output,
    thoughtsTokenCount: usage.output_tokens_details?.thinking_tokens ?? 0,
    totalTokenCount: prompt + output,
    cachedContentTokenCount: cached,
  };
}

/** The HTTP status that each error has where it is no event. */
const STATUS: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};
