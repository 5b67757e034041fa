import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { callIds, responseIds } from './evidence.ts';
import { type Home, RESTORE, spawnChild } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames and records of every form
type Any = any;

/** What is waited for at most, in milliseconds: a request, once nothing keeps it from being answered; an end. */
const PATIENCE_MS = 5_000;
/** Node's own are about 20. */
const MAX_IDLE_DESCRIPTORS = 32;
/** No such session (now), not at this moment, changed by another process. */
const REFUSALS = [-32002, -32602, -32021];

/** What is wrong with a transcript: links, calls without exactly one response each, messages behind an open call. */
export function transcriptFaults(records: readonly Any[]): string[] {
  const found: string[] = [];
  let open = new Set<string>();
  for (const [at, record] of records.entries()) {
    if (record.parentUuid !== (records[at - 1]?.uuid ?? null))
      found.push(`record ${at} is not linked to its forerunner`);
    if (!record.message) continue;
    const responses = responseIds([record]);
    for (const id of responses) if (!open.delete(id)) found.push(`record ${at} answers ${id}, which is not open`);
    if (responses.length === 0 && open.size > 0) found.push(`record ${at} (${record.type}) comes while a call is open`);
    const calls = callIds([record]);
    if (calls.length > 0) open = new Set(calls);
  }
  return found;
}

/** The calls of a conversation's last message, where it is a batch of questions and nothing else. */
export function openQuestions(records: readonly Any[]): string[] {
  const calls = (records.findLast(({ message }) => message)?.message.parts ?? []).flatMap(
    ({ functionCall }: Any) => functionCall ?? [],
  );
  return calls.every(({ name }: Any) => name === 'ask_user_question') ? calls.map(({ id }: Any) => id) : [];
}

/** What all clients of one home know together. */
export class World {
  readonly home: Home;
  readonly faults: string[] = [];
  readonly sessions = new Set<string>();
  /** Those that were deleted, too: the last words of their turns may still come. */
  readonly known = new Set<string>();
  /** Of every permission request, over all processes. */
  readonly requestIds = new Set<unknown>();
  /** Calls that were asked and that nobody has done anything about since, by session. */
  readonly untouched = new Map<string, string>();
  /** Ordinary prompts and cancels on their way, by session. */
  readonly underway = new Map<string, number>();

  constructor(home: Home) {
    this.home = home;
  }

  add(sessionId: string): void {
    this.sessions.add(sessionId);
    this.known.add(sessionId);
  }

  records(sessionId: string): Any[] {
    try {
      // Behind the last line feed is what a process is just writing, or was when it was killed.
      const lines = this.home.bytes(sessionId).toString('utf8').split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line));
    } catch (error) {
      this.faults.push(`a line of ${sessionId} does not parse: ${error}`);
      return [];
    }
  }

  /** Locks, and what they are made of; to be looked at when no process lives. */
  locks(): string[] {
    const folder = dirname(this.home.file('x'));
    return existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith('.jsonl')) : [];
  }

  check(sessionId: string): void {
    for (const fault of transcriptFaults(this.records(sessionId))) this.faults.push(`${sessionId}: ${fault}`);
  }

  move(sessionId: string, by: 1 | -1): void {
    this.underway.set(sessionId, (this.underway.get(sessionId) ?? 0) + by);
    if (by === 1) this.untouched.delete(sessionId);
  }
}

interface Sent {
  readonly method: string;
  /** Of a prompt. */
  readonly session?: string;
  /** Whether it closes the questions that it finds. */
  readonly closes: boolean;
  readonly settle: (frame: Any) => void;
}

interface Waiting {
  readonly id: unknown;
  readonly sessionId: string;
}

export const ENDS = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP', 'eof', 'vanish'] as const;
export type End = (typeof ENDS)[number];

/** One child process and a client that notes whatever the protocol does not allow. */
export class FuzzClient {
  readonly child: ChildProcessWithoutNullStreams;
  readonly waiting: Waiting[] = [];
  readonly pending = new Map<number, Sent>();
  readonly #world: World;
  readonly #exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly #suspects = new Set<unknown>();
  #nextId = 1;
  #stderr = '';

  constructor(world: World, script: object) {
    this.#world = world;
    this.child = spawnChild(world.home, { restore: true, script });
    this.#exited = once(this.child, 'close').then(([code, signal]) => ({ code, signal }));
    this.child.stdin.on('error', () => {});
    this.child.stdout.on('error', () => {});
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    let rest = '';
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#receive(line);
    });
  }

  /** Resolves with the response. */
  request(method: string, params: Any): Promise<Any> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      const closes = method === 'session/prompt' && params._meta?.[RESTORE] !== true;
      if (closes) this.#world.move(params.sessionId, 1);
      const settle = (frame: Any) => {
        if (closes) this.#world.move(params.sessionId, -1);
        resolve(frame);
      };
      const prompts = method === 'session/prompt' ? { session: params.sessionId as string } : {};
      this.pending.set(id, { method, closes, settle, ...prompts });
      this.#send({ jsonrpc: '2.0', id, method, params });
    });
  }

  /** Cancels a session's turn, or the n-th of the requests that are on their way. */
  async cancel(sessionId: string, nth?: number): Promise<void> {
    const touched = nth === undefined ? [sessionId] : [...this.#world.sessions];
    for (const id of touched) this.#world.move(id, 1);
    if (nth === undefined) this.#send({ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } });
    else {
      const requestId = [...this.pending.keys()][nth];
      this.#send({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } });
    }
    await this.roundTrip();
    for (const id of touched) this.#world.move(id, -1);
  }

  answer(nth: number, body: object, decides: boolean): void {
    const [asked] = this.waiting.splice(nth, 1);
    if (asked === undefined) return;
    if (decides) this.#world.untouched.delete(asked.sessionId);
    this.#send({ jsonrpc: '2.0', id: asked.id, ...body });
  }

  async roundTrip(): Promise<void> {
    await this.request('qwen/status/workspace/resource', {});
  }

  /** Answers or cancels what waits until no request is left. */
  async quiesce(): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (this.pending.size > 0) {
      if (Date.now() > deadline) {
        this.#fault(`no answer to ${[...this.pending.values()].map(({ method }) => method)}`);
        return;
      }
      for (const id of this.#world.known) void this.cancel(id);
      await Promise.race([this.roundTrip(), new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    if (this.#descriptors() > MAX_IDLE_DESCRIPTORS) this.#fault(`${this.#descriptors()} files are open at rest`);
    for (const id of this.#suspects) this.#fault(`the question ${id} was asked, whose call had a response already`);
    for (const id of this.#world.sessions) this.#world.check(id);
  }

  #descriptors(): number {
    const folder = `/proc/${this.child.pid}/fd`;
    return existsSync(folder) ? readdirSync(folder).length : 0;
  }

  /** Ends the process in this way and looks at what it leaves. */
  async end(how: End): Promise<void> {
    if (how === 'eof') this.child.stdin.end();
    else if (how === 'vanish') {
      this.child.stdin.destroy();
      this.child.stdout.destroy();
    } else this.child.kill(how);
    const started = Date.now();
    const late = setTimeout(() => this.child.kill('SIGKILL'), PATIENCE_MS);
    const { code, signal } = await this.#exited;
    clearTimeout(late);
    const expected = { SIGKILL: null, SIGINT: 130 }[how as string];
    if (code !== (expected === undefined ? 0 : expected)) this.#fault(`${how} ends it with ${code ?? signal}`);
    if (Date.now() - started > 2_500) this.#fault(`${how} took ${Date.now() - started} ms`);
    if (how === 'eof' && this.pending.size > 0) {
      this.#fault(`no answer before the end to ${[...this.pending.values()].map(({ method }) => method)}`);
    }
    if (this.#stderr !== '') this.#fault(`stderr: ${this.#stderr.slice(0, 2_000)}`);
    for (const { settle } of this.pending.values()) settle({});
    this.pending.clear();
    for (const [sessionId, callId] of this.#world.untouched) {
      const last = this.#world.records(sessionId).findLast(({ message }) => message);
      if (!callIds([last ?? {}]).includes(callId)) {
        this.#fault(`${how}: the question ${callId} of ${sessionId} is lost`);
      }
    }
    for (const id of this.#world.sessions) this.#world.check(id);
  }

  #fault(text: string): void {
    this.#world.faults.push(text);
  }

  #send(frame: object): void {
    this.child.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  #receive(line: string): void {
    const frame = parsed(line);
    if (frame === undefined) this.#fault(`noise on stdout: ${line.slice(0, 200)}`);
    else if (frame.method === undefined) this.#respond(frame);
    else if (frame.method === 'session/request_permission') this.#asked(frame);
    else if (frame.method === '$/cancel_request') this.#withdraw(frame.params.requestId);
    else if (frame.method === 'session/update') this.#updated(frame.params);
    else this.#fault(`unexpected ${frame.method}`);
  }

  #respond(frame: Any): void {
    const sent = this.pending.get(frame.id);
    if (sent === undefined) this.#fault(`a response to nothing: ${JSON.stringify(frame).slice(0, 300)}`);
    this.pending.delete(frame.id);
    // Here, as an update may come in the same chunk, before whoever waits for the response goes on.
    if (typeof frame.result?.sessionId === 'string') this.#world.known.add(frame.result.sessionId);
    sent?.settle(frame);
    const { code, data } = frame.error ?? {};
    if (code === undefined || REFUSALS.includes(code)) return;
    const fromProvider = code === -32000 || `${data?.code}`.startsWith('provider_') || code === -32800;
    if (!fromProvider) this.#fault(`${sent?.method} failed: ${JSON.stringify(frame.error)}`);
  }

  #asked({ id, params: { sessionId, toolCall } }: Any): void {
    const world = this.#world;
    if (world.requestIds.has(id)) this.#fault(`the request id ${id} comes again`);
    world.requestIds.add(id);
    if (!world.sessions.has(sessionId)) this.#fault('a question of an unknown session');
    const records = world.records(sessionId);
    if (records.length > 0 && !callIds(records).includes(toolCall.toolCallId))
      this.#fault('a question before its call');
    if (responseIds(records).includes(toolCall.toolCallId)) this.#suspects.add(id);
    const turns = [...this.pending.values()].filter((sent) => sent.session === sessionId);
    const asking = turns.filter(({ closes }) => closes).length;
    // With another turn or a cancel on its way, that may close it yet.
    const alone = turns.length === 1 && (world.underway.get(sessionId) ?? 0) === asking;
    if (alone) world.untouched.set(sessionId, toolCall.toolCallId);
    this.waiting.push({ id, sessionId });
  }

  #withdraw(requestId: unknown): void {
    this.#suspects.delete(requestId);
    const at = this.waiting.findIndex(({ id }) => id === requestId);
    if (at !== -1) this.waiting.splice(at, 1);
  }

  #updated({ sessionId, update }: Any): void {
    if (!this.#world.known.has(sessionId)) this.#fault(`an update of the unknown session ${sessionId}`);
    if (update.sessionUpdate !== 'tool_call_update' || update.status !== 'completed') return;
    const records = this.#world.records(sessionId);
    // Of a batch, what was answered counts with its last answer.
    const batch = records.find((record) => callIds([record]).includes(update.toolCallId));
    if (batch === undefined || callIds([batch]).at(-1) !== update.toolCallId) return;
    if (!responseIds(records).includes(update.toolCallId)) this.#fault('an answer was confirmed before it was on disk');
  }
}

function parsed(line: string): Any {
  try {
    const frame = JSON.parse(line);
    return frame?.jsonrpc === '2.0' ? frame : undefined;
  } catch {
    return undefined;
  }
}
