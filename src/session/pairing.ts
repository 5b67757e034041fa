import type { Content, FunctionCall, Part } from '@google/genai';

/**
 * The history as a model may see it: every function call is followed by exactly one response, adjacent and in call order.
 * A missing response becomes an error response with `errorText`; a second one, and one without a call, is left out.
 * What a person said after a call that had to be closed stands in the same user turn, behind the responses.
 * Answers `contents` itself where nothing is to be done; never changes it, and copies no part.
 */
export function pairCalls(contents: readonly Content[], errorText: string): readonly Content[] {
  let paired: Content[] | undefined;
  for (let at = 0; at < contents.length; ) {
    const end = turnEnd(contents, at);
    const turn = isPaired(contents, at, end) ? undefined : pairTurn(contents, at, end, errorText);
    if (turn) paired ??= contents.slice(0, at);
    if (paired) paired.push(...(turn ?? contents.slice(at, end)));
    at = end;
  }
  return paired ?? contents;
}

/** A turn is a model's content, or none, and the user's contents behind it. */
function turnEnd(contents: readonly Content[], start: number): number {
  let end = start + 1;
  while (end < contents.length && !isModel(contents[end]!)) end++;
  return end;
}

const isModel = ({ role }: Content): boolean => role === 'model';

function callsOf(content: Content): FunctionCall[] {
  return isModel(content) ? (content.parts ?? []).flatMap(({ functionCall }) => functionCall ?? []) : [];
}

/** Whether the responses of a turn begin its first user content, in call order, and are nowhere else. */
function isPaired(contents: readonly Content[], start: number, end: number): boolean {
  const calls = callsOf(contents[start]!);
  const firstUser = isModel(contents[start]!) ? start + 1 : start;
  let next = 0;
  for (let at = firstUser; at < end; at++) {
    for (const [index, { functionResponse }] of (contents[at]!.parts ?? []).entries()) {
      if (!functionResponse) continue;
      const call = calls[next++];
      if (at !== firstUser || index !== next - 1 || !call || (call.id || '') !== (functionResponse.id || ''))
        return false;
    }
  }
  return next === calls.length;
}

function pairTurn(contents: readonly Content[], start: number, end: number, errorText: string): Content[] {
  const first = contents[start]!;
  const model = isModel(first) ? [first] : [];
  const users = contents.slice(start + model.length, end);
  const calls = callsOf(first);
  if (calls.length === 0) return [...model, ...users.flatMap(withoutResponses)];
  const responses = new Responses(users);
  const parts = calls.map((call) => responses.take(call) ?? closing(call, errorText));
  const others = users.flatMap((content) => (content.parts ?? []).filter(({ functionResponse }) => !functionResponse));
  return [...model, { role: 'user', parts: [...parts, ...others] }];
}

function withoutResponses(content: Content): Content[] {
  const kept = (content.parts ?? []).filter(({ functionResponse }) => !functionResponse);
  return kept.length > 0 ? [{ ...content, parts: kept }] : [];
}

/** The responses of one turn, each given out once. Those without an id answer calls without one, by name. */
class Responses {
  readonly #byCall = new Map<string, Part[]>();

  constructor(users: readonly Content[]) {
    for (const { parts } of users) {
      for (const part of parts ?? []) {
        if (!part.functionResponse) continue;
        const key = keyOf(part.functionResponse);
        const queue = this.#byCall.get(key);
        if (queue) queue.push(part);
        else this.#byCall.set(key, [part]);
      }
    }
    for (const queue of this.#byCall.values()) queue.reverse();
  }

  take(call: FunctionCall): Part | undefined {
    return this.#byCall.get(keyOf(call))?.pop();
  }
}

function keyOf({ id, name }: { readonly id?: string; readonly name?: string }): string {
  return id ? `id ${id}` : `name ${name}`;
}

function closing({ id, name }: FunctionCall, error: string): Part {
  return { functionResponse: { ...(id ? { id } : {}), ...(name ? { name } : {}), response: { error } } };
}
