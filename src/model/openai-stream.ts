import { ProviderFault } from '../session/faults.ts';
import type { ModelEvent, ModelFinish, UsageMetadata } from '../session/ports.ts';
import type { Reply } from './exchange.ts';
import { StreamedRefusal } from './http-faults.ts';
import { type CallDelta, GrowingCalls } from './openai-calls.ts';
import type { ProviderPart } from './provider-data.ts';

/** A chunk, as the many servers that speak OpenAI's protocol send it; nothing of it is certain. */
interface Chunk {
  readonly id?: string;
  readonly choices?: readonly Choice[] | null;
  readonly usage?: Usage | null;
  readonly error?: unknown;
  readonly object?: string;
}

interface Choice {
  readonly delta?: Delta | null;
  /** Whole, from a server that does not stream. */
  readonly message?: Delta | null;
  readonly finish_reason?: string | null;
  readonly usage?: Usage | null;
}

interface Delta {
  readonly content?: string | readonly { readonly text?: string }[] | null;
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly reasoning_details?: readonly Detail[] | null;
  readonly refusal?: string | null;
  readonly tool_calls?: readonly CallDelta[] | null;
  readonly function_call?: CallDelta['function'];
}

type Detail = Readonly<Record<string, unknown>>;

interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly total_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
  /** DeepSeek's. */
  readonly prompt_cache_hit_tokens?: number;
}

/** What of one streamed chat completion has come so far. */
export class OpenAiReply implements Reply {
  readonly #calls = new GrowingCalls();
  readonly #details: Record<string, unknown>[] = [];
  #inReasoning = false;
  #usage: UsageMetadata | undefined;
  #finish: string | undefined;
  #id: string | undefined;
  #spoke = false;
  #refused = false;
  #done = false;

  take(data: string, heard: ModelEvent[]): boolean {
    if (data.trim() === '[DONE]') {
      this.#done = true;
      return false;
    }
    const chunk: Chunk = JSON.parse(data);
    if (chunk.error || chunk.object === 'error') throw streamedRefusal(chunk);
    this.#id ??= chunk.id || undefined;
    const choice = chunk.choices?.[0];
    const usage = chunk.usage ?? choice?.usage;
    if (usage) this.#usage = usageOf(usage);
    if (choice === undefined) return true;
    const delta = choice.delta ?? choice.message;
    if (delta) this.#hear(delta, heard);
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    return true;
  }

  #hear(delta: Delta, heard: ModelEvent[]): void {
    const thought = delta.reasoning_content || delta.reasoning;
    if (thought) {
      this.#inReasoning ||= !delta.reasoning_content;
      this.#say(heard, thought, true);
    }
    if (delta.reasoning_details) for (const detail of delta.reasoning_details) this.#detail(detail);
    const { content } = delta;
    if (typeof content === 'string') this.#say(heard, content, false);
    else if (content) for (const { text } of content) this.#say(heard, text, false);
    if (delta.refusal) {
      this.#refused = true;
      this.#say(heard, delta.refusal, false);
    }
    if (delta.tool_calls) for (const call of delta.tool_calls) this.#calls.add(call);
    if (delta.function_call) this.#calls.add({ index: 0, function: delta.function_call });
  }

  #say(heard: ModelEvent[], text: string | undefined, thought: boolean): void {
    if (!text) return;
    this.#spoke = true;
    heard.push({ kind: 'part', part: thought ? { text, thought } : { text } });
  }

  /** OpenRouter's thoughts in full, signatures included, come in pieces that belong together by index and type. */
  #detail(detail: Detail): void {
    const last = this.#details.at(-1);
    if (last === undefined || last['type'] !== detail['type'] || last['index'] !== detail['index']) {
      this.#details.push({ ...detail });
      return;
    }
    for (const [key, value] of Object.entries(detail)) {
      const grows = (key === 'text' || key === 'summary' || key === 'data') && typeof last[key] === 'string';
      if (value !== null && value !== undefined) last[key] = grows ? `${last[key]}${value}` : value;
    }
  }

  end(): readonly ModelEvent[] {
    const calls = this.#calls.parts();
    const reason = this.#reason(calls.length > 0);
    const parts = [...this.#extras(), ...calls];
    return [
      ...parts.map((part): ModelEvent => ({ kind: 'part', part })),
      ...(this.#usage ? [{ kind: 'usage', usage: this.#usage } as const] : []),
      { kind: 'finish', reason, ...(this.#id !== undefined && { responseId: this.#id }) },
    ];
  }

  /** What has to go back with the thoughts, but is no text. */
  #extras(): ProviderPart[] {
    if (!this.#inReasoning && this.#details.length === 0) return [];
    const fields = this.#details.length > 0 && { fields: { reasoning_details: this.#details } };
    const thoughtField = this.#inReasoning && ({ thoughtField: 'reasoning' } as const);
    return [{ providerData: { provider: 'openai', ...thoughtField, ...fields } }];
  }

  #reason(calls: boolean): ModelFinish {
    const finish = this.#finish;
    if (finish === undefined && !this.#done) {
      throw new ProviderFault('broken_stream', 'The model stopped in the middle of its reply.');
    }
    if (this.#refused || finish === 'content_filter') return 'refusal';
    if (finish === 'length') return 'max_tokens';
    if (!this.#spoke && !calls) {
      throw new ProviderFault('empty_reply', `The model replied with nothing (${finish ?? 'no reason given'}).`);
    }
    return 'stop';
  }
}

function usageOf(usage: Usage): UsageMetadata {
  const prompt = usage.prompt_tokens ?? 0;
  const completion = usage.completion_tokens ?? 0;
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: completion,
    thoughtsTokenCount: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    totalTokenCount: usage.total_tokens ?? prompt + completion,
    cachedContentTokenCount: usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0,
  };
}

/** The HTTP status that an error in a stream would have had, by its number or its name. */
function streamedRefusal(chunk: Chunk): StreamedRefusal {
  const error = typeof chunk.error === 'string' ? { message: chunk.error } : (chunk.error ?? chunk);
  const { code, status, type } = error as Readonly<Record<string, unknown>>;
  const number = [code, status].map(Number).find((each) => Number.isInteger(each) && each >= 400 && each < 600);
  const names = `${code ?? ''} ${type ?? ''}`;
  const named = NAMED.find(([pattern]) => pattern.test(names))?.[1];
  return new StreamedRefusal(number ?? named ?? 500, error);
}

const NAMED: readonly (readonly [RegExp, number])[] = [
  [/rate_?limit|too_many|throttl|quota/i, 429],
  [/context_length|invalid_request|bad_?request|invalid_?param/i, 400],
  [/auth|api_?key|permission/i, 401],
];
