import { isWholeObject, parseArguments } from './call-arguments.ts';
import type { ProviderPart } from './provider-data.ts';

/** A piece of a tool call. Only the first piece of a call is sure to have an id and a name. */
export interface CallDelta {
  readonly index?: number | null;
  readonly id?: string | null;
  readonly type?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: unknown } | null;
  readonly [field: string]: unknown;
}

interface GrowingCall {
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  readonly args: string[];
  readonly fields: Record<string, unknown>;
}

/** The tool calls of one reply, put together from pieces that may be interleaved. */
export class GrowingCalls {
  readonly #calls: GrowingCall[] = [];

  add(delta: CallDelta): void {
    const { index, id, type: _, function: said, ...fields } = delta;
    const own = id || undefined;
    const text = argumentsText(said?.arguments);
    const call = this.#find(index ?? undefined, own, said?.name ?? '', text) ?? this.#begin(index ?? undefined);
    call.id ??= own;
    // Some servers say the whole name with every piece, others cut it.
    if (said?.name && said.name !== call.name) call.name += said.name;
    if (text !== '') call.args.push(text);
    Object.assign(call.fields, fields);
  }

  /** The call that a piece belongs to; undefined when it begins one. */
  #find(index: number | undefined, id: string | undefined, name: string, text: string): GrowingCall | undefined {
    const known = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
    if (known !== undefined) return known;
    const last = index === undefined ? this.#calls.at(-1) : this.#calls.findLast((call) => call.index === index);
    if (last === undefined) return undefined;
    // Servers that number every call 0, or none, tell them apart by id, or send each in one piece.
    if (id !== undefined && last.id !== undefined) return undefined;
    if (name !== '' && text !== '' && last.name !== '' && isWholeObject(last.args.join(''))) return undefined;
    return last;
  }

  #begin(index: number | undefined): GrowingCall {
    const call: GrowingCall = { index, id: undefined, name: '', args: [], fields: {} };
    this.#calls.push(call);
    return call;
  }

  /** The calls as parts; a piece that never got a name is none. */
  parts(): ProviderPart[] {
    return this.#calls
      .filter(({ name }) => name !== '')
      .map(({ id, name, args, fields }) => ({
        functionCall: { ...(id !== undefined && { id }), name, args: parseArguments(args.join('')) },
        ...(Object.keys(fields).length > 0 && { providerData: { provider: 'openai', fields } }),
      }));
  }
}

/** Arguments are JSON as text; a few servers send the object itself. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}
