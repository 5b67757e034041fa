import { readFileSync } from 'node:fs';
import { ABOUT_SESSION } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames and records of every form are compared
type Json = any;

/** What of a message from the agent is compared: everything but our own texts, ids of its own making and durations. */
export type Seen =
  | { readonly update: Json }
  | { readonly asked: Json }
  | { readonly answered: string; readonly result: Json }
  | { readonly answered: string; readonly error: number }
  | { readonly drained: Json }
  | { readonly notified: string };

/** The records of a recorded transcript. */
export function recordedTranscript(name: string): Json[] {
  const file = new URL(`../fixtures/wire/transcripts/${name}.jsonl`, import.meta.url);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** A transcript as far as it is compared: order, kinds, links and outcomes of its records. */
export function shapeOf(records: readonly Json[]): Json[] {
  return records.map((record, index) => {
    const { type, subtype, uuid: _, parentUuid, message, systemPayload, toolCallResult } = record;
    const { status, executionStatus } = toolCallResult ?? {};
    const back = parentUuid === null ? null : index - records.findIndex(({ uuid }) => uuid === parentUuid);
    return JSON.parse(
      JSON.stringify({
        record: subtype ?? type,
        back,
        role: message?.role,
        parts: message?.parts.map(partOf),
        event: systemPayload?.uiEvent?.['event.name'],
        status,
        executionStatus,
      }),
    );
  });
}

/** Every field of each kind of record, with its type; kinds are told apart by what their fields depend on. */
export function formsOf(records: readonly Json[]): Map<string, string[]> {
  const forms = new Map<string, string[]>();
  for (const record of records) {
    const { type, subtype, parentUuid, systemPayload, toolCallResult, message } = record;
    const parts = message?.parts.map((part: Json) => Object.keys(part).join());
    const kind = [
      subtype ?? type,
      systemPayload?.uiEvent?.['event.name'],
      toolCallResult?.status,
      parts,
      parentUuid && 'on',
    ];
    forms.set(kind.join(' '), fieldsOf(record).toSorted());
  }
  return forms;
}

/** Fields that say how long an answer may be, and what it said, once more: the reference's own statistics. */
const STATISTICS = ['.systemPayload.uiEvent.response_text: string', '.contextWindowSize: number'];

function fieldsOf(value: Json, path = ''): string[] {
  if (typeof value !== 'object' || value === null) {
    const field = `${path}: ${value === null ? 'null' : typeof value}`;
    return STATISTICS.includes(field) ? [] : [field];
  }
  if (Array.isArray(value)) return [...new Set(value.flatMap((inner) => fieldsOf(inner, `${path}[]`)))];
  return Object.entries(value).flatMap(([key, inner]) => fieldsOf(inner, `${path}.${key}`));
}

function partOf({ text, functionCall, functionResponse }: Json): string {
  if (functionCall) return `call ${functionCall.id} ${functionCall.name}`;
  if (functionResponse) return `${Object.keys(functionResponse.response)} ${functionResponse.id}`;
  return text === undefined ? 'other' : 'text';
}

const DRAIN = 'craft/drainMidTurnQueue';
/** What a daemon is told of the workspace and of work in the background is each agent's own. */
const isOwn = (method: string): boolean => /^qwen\/(status|notify|control\/workspace)\//.test(method);

/** What the agent sent, in the order in which it came; `daemon` when the client is one. */
export function seenIn(
  messages: readonly { readonly out: boolean; readonly message: Json }[],
  daemon: boolean,
): Seen[] {
  const methods = new Map<unknown, string>();
  const seen: Seen[] = [];
  for (const { out, message } of messages) {
    if (message === undefined) continue;
    if (out) {
      if (message.method && message.id !== undefined) methods.set(message.id, message.method);
      continue;
    }
    const { method, params, error } = message;
    if (method === undefined) {
      const answered = methods.get(message.id) ?? 'nothing';
      if (answered === 'initialize' || isOwn(answered)) continue;
      seen.push(error ? { answered, error: error.code } : { answered, result: resultOf(message) });
    } else if (method === 'session/update') {
      if (!ABOUT_SESSION.includes(params.update.sessionUpdate)) seen.push({ update: params.update });
    } else if (method === 'session/request_permission') seen.push({ asked: params });
    else if (method === DRAIN) {
      // The reference asks other clients, too, and has a key of its own for a guard that we have not.
      const { todoStopGuardWatchQueuedPrompt: _, ...rest } = params;
      if (daemon) seen.push({ drained: rest });
    } else if (!isOwn(method)) seen.push({ notified: method });
  }
  return joined(seen).map(comparable);
}

/** Settings are each agent's own. */
function resultOf({ result }: Json): Json {
  const { modes: _modes, models: _models, configOptions: _options, ...rest } = result;
  return rest;
}

/** Replaces what is worded by the agent, measured or made up. */
function comparable(value: Json): Json {
  if (typeof value === 'string')
    return value.replace(/(User has provided the following answers|The user answered):/g, '<answered>:');
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  if (value.sessionUpdate === 'tool_call_update' && value.status === 'failed') {
    const text = value.content[0].content.text === '' ? '' : '<why it failed>';
    return {
      ...comparable({ ...value, status: '' }),
      status: 'failed',
      content: [{ type: 'content', content: { type: 'text', text } }],
    };
  }
  return Object.fromEntries(
    Object.entries<Json>(value).map(([key, inner]) => {
      if (key === 'durationMs' && Number.isSafeInteger(inner)) return [key, '<ms>'];
      if (key.endsWith('Uuid') && /^[0-9a-f-]{36}$/.test(inner)) return [key, '<uuid>'];
      return [key, comparable(inner)];
    }),
  );
}

/** Joins streamed text: where it is cut is the model's matter. */
function joined(seen: readonly Seen[]): Seen[] {
  const all: Json[] = [];
  for (const one of seen) {
    const last = all.at(-1);
    if (isText(one) && isText(last)) last.update.content.text += one.update.content.text;
    else all.push(structuredClone(one));
  }
  return all;
}

const isText = (seen: Json): seen is { update: Json } =>
  seen?.update?.sessionUpdate === 'agent_message_chunk' && seen.update._meta === undefined;
