import type { Part } from '@google/genai';
import type { ProviderFaultKind } from '../session/faults.ts';
import type { ModelFinish, UsageMetadata } from '../session/ports.ts';

/** A script for the scripted model, checked; docs/SCRIPT.md describes the file format. */
export interface Script {
  readonly model?: string;
  readonly contextWindow?: number;
  readonly rules: readonly Rule[];
}

export interface Rule {
  readonly when: Conditions;
  readonly steps: readonly Step[];
}

/** All that are present must hold. */
export interface Conditions {
  /** Contained in the last message's text. */
  readonly text?: string;
  /** Found in the last message's text. */
  readonly pattern?: RegExp;
  /** Whether the last message has a function response, or has one of this function. */
  readonly response?: boolean | string;
  /** Contained in the text of the last message's function responses. */
  readonly responseText?: string;
  /** How many messages with text of the user the conversation has. */
  readonly turn?: number;
  /** The n-th request to this model in this process, from 1. */
  readonly call?: number;
  /** The rule plays this often in this process, then never again. */
  readonly times?: number;
}

export type Step =
  | {
      readonly kind: 'text';
      readonly text: string;
      readonly thought: boolean;
      /** Into how many parts the text is cut. */
      readonly deltas: number;
      /** How often the whole is streamed. */
      readonly repeat: number;
    }
  /** `id` undefined: one is made up; null: the call has none. */
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
      readonly id?: string | null;
    }
  | { readonly kind: 'part'; readonly part: Part }
  | { readonly kind: 'wait'; readonly milliseconds: number | 'abort' }
  | {
      readonly kind: 'fault';
      readonly fault: ProviderFaultKind;
      readonly message: string;
      readonly status?: number;
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'usage'; readonly usage: UsageMetadata }
  | { readonly kind: 'finish'; readonly reason: ModelFinish };

/** A script that is wrong; the message names the place in it, such as `rules[2].steps[0].call`. */
export class ScriptError extends Error {
  constructor(path: string, complaint: string) {
    super(`${path}: ${complaint}`);
    this.name = 'ScriptError';
  }
}

const FAULTS: readonly ProviderFaultKind[] = [
  'auth',
  'rate_limit',
  'server',
  'bad_request',
  'context_overflow',
  'broken_stream',
  'empty_reply',
];
const FINISHES: readonly ModelFinish[] = ['stop', 'max_tokens', 'refusal'];
/** A script is a test's or a demo's; beyond it a typing mistake would fill the memory. */
const MOST_REPEATS = 1_000_000;

/** Checks a script as JSON gives it. Throws `ScriptError` for anything unknown, missing or of the wrong type. */
export function parseScript(value: unknown): Script {
  const script = object('script', value, ['model', 'contextWindow', 'rules']);
  const model = optional(script, 'model', text);
  const contextWindow = optional(script, 'contextWindow', positive);
  const rules = list('rules', script['rules']).map((rule, index) => parseRule(`rules[${index}]`, rule));
  return { rules, ...(model !== undefined && { model }), ...(contextWindow !== undefined && { contextWindow }) };
}

function parseRule(path: string, value: unknown): Rule {
  const rule = object(path, value, ['when', 'steps']);
  return {
    when: rule['when'] === undefined ? {} : parseConditions(`${path}.when`, rule['when']),
    steps: list(`${path}.steps`, rule['steps']).map((step, index) => parseStep(`${path}.steps[${index}]`, step)),
  };
}

function parseConditions(path: string, value: unknown): Conditions {
  const keys = ['text', 'pattern', 'flags', 'response', 'responseText', 'turn', 'call', 'times'];
  const when = object(path, value, keys);
  const conditions = {
    text: optional(when, 'text', text, path),
    pattern: when['pattern'] === undefined ? undefined : regularExpression(path, when),
    response: optional(when, 'response', booleanOrText, path),
    responseText: optional(when, 'responseText', text, path),
    turn: optional(when, 'turn', positive, path),
    call: optional(when, 'call', positive, path),
    times: optional(when, 'times', positive, path),
  };
  if (when['flags'] !== undefined && when['pattern'] === undefined) {
    throw new ScriptError(`${path}.flags`, 'belongs to a pattern, and there is none');
  }
  return present(conditions);
}

/** The key that tells what a step does, and which other keys go with it. */
const STEPS: Readonly<Record<string, { others: readonly string[]; parse: (path: string, step: Raw) => Step }>> = {
  text: { others: ['deltas', 'repeat'], parse: (path, step) => parseText(path, step, 'text') },
  thought: { others: ['deltas', 'repeat'], parse: (path, step) => parseText(path, step, 'thought') },
  call: { others: ['args', 'id'], parse: parseCall },
  part: {
    others: [],
    parse: (path, step) => ({ kind: 'part', part: object(`${path}.part`, step['part']) as Part }),
  },
  wait: {
    others: [],
    parse: (path, { wait }) => ({
      kind: 'wait',
      milliseconds: wait === 'abort' ? wait : whole(`${path}.wait`, wait, 'must be milliseconds or "abort"'),
    }),
  },
  fault: { others: ['message', 'status', 'retryAfterMs'], parse: parseFault },
  usage: {
    others: [],
    parse: (path, step) => ({ kind: 'usage', usage: object(`${path}.usage`, step['usage']) as UsageMetadata }),
  },
  finish: {
    others: [],
    parse: (path, step) => ({ kind: 'finish', reason: oneOf(`${path}.finish`, step['finish'], FINISHES) }),
  },
};

function parseStep(path: string, value: unknown): Step {
  const step = object(path, value);
  const kinds = Object.keys(STEPS).filter((key) => step[key] !== undefined);
  const kind = kinds[0];
  if (kind === undefined || kinds.length > 1) {
    throw new ScriptError(path, `must have exactly one of ${Object.keys(STEPS).join(', ')}`);
  }
  const { others, parse } = STEPS[kind]!;
  object(path, value, [kind, ...others]);
  return parse(path, step);
}

function parseText(path: string, step: Raw, key: 'text' | 'thought'): Step {
  return {
    kind: 'text',
    thought: key === 'thought',
    text: text(`${path}.${key}`, step[key]),
    deltas: repeats(step, 'deltas', path),
    repeat: repeats(step, 'repeat', path),
  };
}

function parseCall(path: string, step: Raw): Step {
  const { id } = step;
  return {
    kind: 'call',
    name: text(`${path}.call`, step['call']),
    args: step['args'] === undefined ? {} : object(`${path}.args`, step['args']),
    ...(id !== undefined && { id: id === null ? null : text(`${path}.id`, id) }),
  };
}

function parseFault(path: string, step: Raw): Step {
  const fault = oneOf(`${path}.fault`, step['fault'], FAULTS);
  const message = optional(step, 'message', text, path) ?? `The script says so (${fault}).`;
  const status = optional(step, 'status', positive, path);
  const retryAfterMs = optional(step, 'retryAfterMs', whole, path);
  return { kind: 'fault', fault, message, ...present({ status, retryAfterMs }) };
}

type Raw = Readonly<Record<string, unknown>>;

function object(path: string, value: unknown, keys?: readonly string[]): Raw {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ScriptError(path, 'must be an object');
  }
  const unknown = keys && Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined)
    throw new ScriptError(`${path}.${unknown}`, `is not known here; known: ${keys?.join(', ')}`);
  return value as Raw;
}

function list(path: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new ScriptError(path, 'must be a list');
  return value;
}

function text(path: string, value: unknown): string {
  if (typeof value !== 'string') throw new ScriptError(path, 'must be a string');
  return value;
}

function whole(path: string, value: unknown, complaint = 'must be a whole number, 0 or more'): number {
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw new ScriptError(path, complaint);
  return Number(value);
}

function positive(path: string, value: unknown): number {
  if (whole(path, value, 'must be a whole number, 1 or more') === 0) {
    throw new ScriptError(path, 'must be a whole number, 1 or more');
  }
  return Number(value);
}

function repeats(step: Raw, key: string, path: string): number {
  const count = optional(step, key, positive, path) ?? 1;
  if (count > MOST_REPEATS) throw new ScriptError(`${path}.${key}`, `must be at most ${MOST_REPEATS}`);
  return count;
}

function booleanOrText(path: string, value: unknown): boolean | string {
  if (typeof value === 'boolean' || typeof value === 'string') return value;
  throw new ScriptError(path, 'must be true, false or the name of a function');
}

function oneOf<T extends string>(path: string, value: unknown, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new ScriptError(path, `must be one of ${choices.join(', ')}`);
  return found;
}

function regularExpression(path: string, when: Raw): RegExp {
  const source = text(`${path}.pattern`, when['pattern']);
  const flags = optional(when, 'flags', text, path) ?? '';
  if (/[gy]/.test(flags)) throw new ScriptError(`${path}.flags`, 'must not have g or y, which remember a position');
  try {
    return new RegExp(source, flags);
  } catch (error) {
    throw new ScriptError(`${path}.pattern`, error instanceof Error ? error.message : String(error));
  }
}

function optional<T>(from: Raw, key: string, parse: (path: string, value: unknown) => T, path?: string): T | undefined {
  return from[key] === undefined ? undefined : parse(path === undefined ? key : `${path}.${key}`, from[key]);
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function present<T extends object>(values: T): Present<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Present<T>;
}
