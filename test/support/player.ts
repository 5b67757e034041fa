import { readFileSync, utimesSync } from 'node:fs';
import { type Asked, Home, Peer, type RecordedFrame, recordedFrames } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames and records of every form are compared
type Json = any;

/** What of a message from the agent is compared: everything but our own texts, ids of its own making and durations. */
export type Seen =
  | { readonly update: Json }
  | { readonly asked: Json }
  | { readonly answered: string; readonly result: Json }
  | { readonly answered: string; readonly error: number }
  | { readonly notified: string };

export interface Played {
  /** What the reference sent, and what our child sent to the same frames. */
  readonly recorded: readonly Seen[];
  readonly ours: readonly Seen[];
  readonly home: Home;
  readonly sessionId: string;
}

/** The records of a recorded transcript. */
export function recordedTranscript(name: string): Json[] {
  const file = new URL(`../fixtures/wire/transcripts/${name}.jsonl`, import.meta.url);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/**
 * Sends the recorded client's frames to the real child, each after the answers and questions that came before it in the
 * recording, answers questions as recorded, and ends the child by closing its input. `placed` names the transcript that
 * is there at the start; without one the session is new, under the recorded id.
 */
export async function play(name: string, placed?: string): Promise<Played> {
  const exchange = recordedFrames(name) as (RecordedFrame & { readonly note?: string })[];
  const home = new Home();
  if (placed !== undefined) touch(home.file(home.place(placed)), exchange);
  const restore = exchange.some(({ note }) => note?.includes('--restore-ask-user-question'));
  const peer = await Peer.start({ home, restore, script: scriptOf(name) });
  const sent = new Map<unknown, Promise<unknown>>();
  const asked = new Map<unknown, Asked>();
  for (const { dir, frame } of exchange) {
    if (frame === undefined || frame.method === 'initialize') continue;
    if (dir === 'client->child') {
      if (frame.method === undefined) answer(asked.get(frame.id), frame);
      else if (frame.id === undefined) await peer.notify(frame.method, frame.params);
      else sent.set(frame.id, send(peer, name, frame));
    } else if (frame.method === 'session/request_permission') asked.set(frame.id, await peer.question());
    else if (frame.method === undefined) await sent.get(frame.id);
  }
  const exit = await peer.eof();
  if (exit.code !== 0 || peer.unanswered > 0) throw new Error(`the child ended with ${JSON.stringify(exit)}`);
  return {
    recorded: seenIn(exchange.map(({ dir, frame }) => ({ out: dir === 'client->child', message: frame }))),
    ours: seenIn(peer.wire.map(({ dir, message }) => ({ out: dir === 'out', message }))),
    home,
    sessionId: sessionIdOf(name),
  };
}

/** When a session was last updated is when its file was. */
function touch(file: string, exchange: readonly RecordedFrame[]): void {
  const updated = exchange.map(({ frame }) => frame?.result?.lastUpdated).find((time) => time !== undefined);
  if (updated === undefined) return;
  // Half a millisecond more: the file system keeps nanoseconds, made from a fraction of seconds that may be a bit short.
  const seconds = (Date.parse(updated) + 0.5) / 1000;
  utimesSync(file, seconds, seconds);
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

function partOf({ text, functionCall, functionResponse }: Json): string {
  if (functionCall) return `call ${functionCall.id} ${functionCall.name}`;
  if (functionResponse) return `${Object.keys(functionResponse.response)} ${functionResponse.id}`;
  return text === undefined ? 'other' : 'text';
}

const sessionIdOf = (name: string): string => recordedTranscript(name)[0].sessionId;

/** The recorded model: what it called at which words, an echo of responses, one plain reply. */
function scriptOf(name: string): object {
  const records = recordedTranscript(name).filter(({ message }) => message !== undefined);
  const rules = records.flatMap(({ message, usageMetadata }, index) => {
    const calls = message.parts.flatMap(({ functionCall: call }: Json) =>
      call ? [{ call: call.name, args: call.args, id: call.id }] : [],
    );
    const text = records[index - 1]?.message.parts[0].text;
    return calls.length > 0 && text ? [{ when: { text }, steps: [...calls, { usage: usageMetadata }] }] : [];
  });
  const usage = records.find(({ usageMetadata }) => usageMetadata)?.usageMetadata ?? {};
  const echo = { when: { response: true }, steps: [{ text: 'TOOL RESULT ECHO: {{response}}', deltas: 2 }, { usage }] };
  return { rules: [echo, ...rules, { steps: [{ text: 'PLAIN REPLY (plain)' }, { usage }] }] };
}

async function send(peer: Peer, name: string, { method, params }: Json): Promise<void> {
  const forced = method === 'session/new' ? { _meta: { 'qwen-code/sessionId': sessionIdOf(name) } } : {};
  await peer.request(method, { ...params, ...forced }).catch(() => {});
}

function answer(asked: Asked | undefined, { result, error }: Json): void {
  if (error) asked?.refuse(error.code, error.message);
  else asked?.answer(result);
}

/** Client methods outside the protocol, sent to a daemon only; and the list of commands, which is each agent's own. */
const LEFT_OUT = ['craft/drainMidTurnQueue'];

function seenIn(messages: readonly { readonly out: boolean; readonly message: Json }[]): Seen[] {
  const methods = new Map<unknown, string>();
  const seen: Seen[] = [];
  for (const { out, message } of messages) {
    if (message === undefined) continue;
    if (out) {
      if (message.method && message.id !== undefined) methods.set(message.id, message.method);
      continue;
    }
    if (message.method === undefined) {
      const answered = methods.get(message.id) ?? 'nothing';
      if (answered === 'initialize') continue;
      seen.push(message.error ? { answered, error: message.error.code } : { answered, result: resultOf(message) });
    } else if (message.method === 'session/update') {
      const { update } = message.params;
      if (update.sessionUpdate !== 'available_commands_update') seen.push({ update });
    } else if (message.method === 'session/request_permission') seen.push({ asked: message.params });
    else if (!LEFT_OUT.includes(message.method)) seen.push({ notified: message.method });
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
