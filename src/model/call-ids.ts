import { createHash } from 'node:crypto';
import type { Content } from '@google/genai';

/** What a provider takes for the id of a call. */
export interface IdRule {
  readonly allowed: RegExp;
  readonly maxLength: number;
  /** Whether two calls of a conversation may share one. */
  readonly unique: boolean;
}

/**
 * Names the calls of one conversation for a provider, the same each time: ids that fit its rule stay as they are, others,
 * which another provider gave, are replaced. The responses of a turn stand in the order of its calls.
 */
export class CallIds {
  readonly #rule: IdRule;
  readonly #given = new Set<string>();
  #waiting: string[] = [];
  #count = 0;

  constructor(rule: IdRule) {
    this.#rule = rule;
  }

  /** The ids of a model turn's calls, in order. */
  ofCalls({ parts = [] }: Content): readonly string[] {
    const ids = parts.flatMap(({ functionCall }) => (functionCall ? [this.#name(functionCall.id)] : []));
    this.#waiting = [...ids];
    return ids;
  }

  /** The id for the next response. */
  ofResponse(own: string | undefined): string {
    return this.#waiting.shift() ?? this.#name(own);
  }

  #name(own: string | undefined): string {
    this.#count += 1;
    const { allowed, maxLength, unique } = this.#rule;
    let id = own || `call_${this.#count}`;
    if (!allowed.test(id) || id.length > maxLength) {
      id = `call_${createHash('sha256').update(id).digest('hex').slice(0, 24)}`;
    }
    if (unique && this.#given.has(id)) id = `${id.slice(0, maxLength - 8)}_${this.#count}`;
    this.#given.add(id);
    return id;
  }
}
