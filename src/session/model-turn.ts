import type { Content, FunctionCall, Part } from '@google/genai';
import type { DanglingCall } from './dangling.ts';

export interface CallIds {
  /** Whether the session has a call of this id already. */
  isUsed(id: string): boolean;
  /** An id that the session has not used. */
  fresh(): string;
}

/**
 * Collects what a model streams into the content of one model turn. Plain text that follows plain text of the same kind is
 * joined, and thoughts with the signature behind them; every other part is kept as the provider sent it, unknown fields and
 * signatures included. A call keeps the provider's id unless it is missing or was used in the session before.
 */
export class ModelTurn {
  readonly calls: DanglingCall[] = [];
  /** Stored id to the provider's own, null where it gave none; empty when all ids are the provider's. */
  readonly providerCallIds: Record<string, string | null> = {};
  readonly #ids: CallIds;
  readonly #parts: Part[] = [];
  /** Deltas of the text part that is still growing; joined once, since joining on every delta is quadratic. */
  #growing: { readonly thought: boolean; readonly texts: string[] } | undefined;

  constructor(ids: CallIds) {
    this.#ids = ids;
  }

  /** Takes a part; gives the call back that it was, if it was one, under its stored id. */
  add(part: Part): DanglingCall | undefined {
    if (isPlainText(part)) {
      this.#addText(part.text, part.thought === true);
      return undefined;
    }
    const thoughts = this.#takeThoughts(part);
    this.#settle();
    if (part.functionCall === undefined) {
      this.#parts.push(thoughts === undefined ? part : { ...part, text: thoughts });
      return undefined;
    }
    const call = this.#identify(part.functionCall);
    this.#parts.push({ ...part, functionCall: { ...part.functionCall, id: call.id } });
    this.calls.push(call);
    return call;
  }

  /** All parts so far, as a model turn. */
  content(): Content {
    this.#settle();
    return { role: 'model', parts: [...this.#parts] };
  }

  /** What a person was shown: the parts so far without the calls, which did not run. */
  spoken(): Content {
    const { parts } = this.content();
    return { role: 'model', parts: (parts ?? []).filter(({ functionCall }) => functionCall === undefined) };
  }

  #identify(call: FunctionCall): DanglingCall {
    const own = call.id ? call.id : undefined;
    const free = own !== undefined && !this.#ids.isUsed(own) && this.calls.every(({ id }) => id !== own);
    const id = free ? own : this.#ids.fresh();
    if (!free) this.providerCallIds[id] = own ?? null;
    return { id, name: call.name ?? '', args: call.args ?? {} };
  }

  #addText(text: string, thought: boolean): void {
    if (this.#growing?.thought !== thought) {
      this.#settle();
      this.#growing = { thought, texts: [] };
    }
    this.#growing?.texts.push(text);
  }

  /** A signature that comes without text behind thoughts is theirs: they go back as one part, which other readers count on. */
  #takeThoughts({ thought, text, thoughtSignature }: Part): string | undefined {
    if (!thought || text !== '' || !thoughtSignature || !this.#growing?.thought) return undefined;
    const thoughts = this.#growing.texts.join('');
    this.#growing = undefined;
    return thoughts;
  }

  #settle(): void {
    if (this.#growing === undefined) return;
    const { thought, texts } = this.#growing;
    this.#growing = undefined;
    const text = texts.join('');
    if (text !== '') this.#parts.push(thought ? { text, thought: true } : { text });
  }
}

/** Nothing but text: joining it loses nothing. */
function isPlainText(part: Part): part is Part & { text: string } {
  return typeof part.text === 'string' && Object.keys(part).every((key) => key === 'text' || key === 'thought');
}

/** Puts the provider's own ids back into what is sent to it; contents that need no change are passed on as they are. */
export function withProviderCallIds(
  contents: readonly Content[],
  ids: ReadonlyMap<string, string | null>,
): readonly Content[] {
  if (ids.size === 0) return contents;
  const renamed = <T extends { readonly id?: string }>(holder: T): T => {
    const own = holder.id === undefined ? undefined : ids.get(holder.id);
    if (own === undefined) return holder;
    const { id: _, ...rest } = holder;
    return (own === null ? rest : { ...rest, id: own }) as T;
  };
  return contents.map((content) => ({
    ...content,
    parts: (content.parts ?? []).map((part) => {
      if (part.functionCall) return { ...part, functionCall: renamed(part.functionCall) };
      if (part.functionResponse) return { ...part, functionResponse: renamed(part.functionResponse) };
      return part;
    }),
  }));
}
