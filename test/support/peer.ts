import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  type AnyMessage,
  type ClientConnection,
  type CreateElicitationRequest,
  client,
  type InitializeRequest,
  methods,
  ndJsonStream,
  RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
  type Stream,
} from '@agentclientprotocol/sdk';
import { onTestFinished } from 'vitest';
import { tempFolder } from './temp.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const FIXTURES = fileURLToPath(new URL('../fixtures/wire/', import.meta.url));
/** The folder of the recorded sessions; it need not exist. */
export const CWD = '/srv/project';
export const RESTORE = 'qwen.daemon.restoreAskUserQuestion';
export const SUPPRESS = 'qwen.daemon.suppressRestoreAskUserQuestion';
export const CANCEL_REASON = 'qwen.daemon.permissionCancelReason';

/** Answers as the recorded model did: echoes responses, asks on `[[ask1]]`, says a plain reply otherwise. */
export const RECORDED_SCRIPT = {
  model: 'fake-model',
  rules: [
    { when: { response: true }, steps: [{ text: 'TOOL RESULT ECHO: {{response}}' }, usage()] },
    { when: { text: '[[ask1]]' }, steps: [ask('Which colour?', 'Colour', ['Red', 'Blue']), usage()] },
    {
      when: { text: '[[asktwice]]' },
      steps: [ask('Which colour?', 'Colour', ['Red', 'Blue']), ask('Which size?', 'Size', ['Small', 'Large']), usage()],
    },
    {
      when: { text: '[[mixed]]' },
      steps: [
        ask('Which colour?', 'Colour', ['Red', 'Blue']),
        { call: 'read_file', args: { file_path: '/srv/project/a.txt' } },
        usage(),
      ],
    },
    { when: { text: '[[invalid]]' }, steps: [ask('Which colour?', 'Colour', ['Red']), usage()] },
    { when: { text: '[[stream]]' }, steps: [{ text: 'some words. ' }, { wait: 'abort' }] },
    { steps: [{ text: 'PLAIN REPLY (plain)' }, usage()] },
  ],
};

function usage() {
  return {
    usage: {
      promptTokenCount: 11,
      candidatesTokenCount: 7,
      thoughtsTokenCount: 0,
      totalTokenCount: 18,
      cachedContentTokenCount: 0,
    },
  };
}

/** A script's step that asks one question. */
export function ask(question: string, header: string, labels: readonly string[]) {
  const options = labels.map((label) => ({ label, description: `about ${label}` }));
  return { call: 'ask_user_question', args: { questions: [{ question, header, options, multiSelect: false }] } };
}

/** Where a process keeps its sessions; several processes may share one, one after the other or at once. */
export class Home {
  readonly path = tempFolder();

  /** The transcript of a session. */
  file(sessionId: string, cwd = CWD): string {
    return join(this.path, 'projects', cwd.replace(/[^A-Za-z0-9]/g, '-'), 'chats', `${sessionId}.jsonl`);
  }

  /** Puts a recorded transcript in its place; answers the session's id, which is its own or `as`. */
  place(recording: string, as?: string): string {
    const text = readFileSync(join(FIXTURES, 'transcripts', `${recording}.jsonl`), 'utf8');
    const { sessionId } = JSON.parse(text.split('\n')[0] as string) as { sessionId: string };
    const placed = as ?? sessionId;
    mkdirSync(dirname(this.file(placed)), { recursive: true });
    writeFileSync(this.file(placed), text.replaceAll(sessionId, placed));
    return placed;
  }

  /** Puts these records, or lines as they are, in a session's place. */
  write(sessionId: string, lines: readonly (string | object)[]): void {
    mkdirSync(dirname(this.file(sessionId)), { recursive: true });
    const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
    writeFileSync(this.file(sessionId), text);
  }

  bytes(sessionId: string, cwd = CWD): Buffer {
    const file = this.file(sessionId, cwd);
    return existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at records of every form
  records(sessionId: string, cwd = CWD): any[] {
    return this.bytes(sessionId, cwd)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }
}

export interface RecordedFrame {
  readonly dir: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at frames of every form
  readonly frame?: any;
}

/** The frames of a recorded exchange. */
export function recordedFrames(name: string): RecordedFrame[] {
  return readFileSync(join(FIXTURES, 'frames', `${name}.jsonl`), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as RecordedFrame);
}

/** A request that the child sent and that waits for an answer. */
export interface Asked<P = RequestPermissionRequest> {
  readonly id: unknown;
  readonly params: P;
  /** Aborts when the child withdraws the request. */
  readonly signal: AbortSignal;
  /** Answers with this result, sent as it stands. */
  answer(result: unknown): void;
  /** Answers with a JSON-RPC error. */
  refuse(code: number, message: string): void;
}

export const submit = (answers: unknown) => ({
  outcome: { outcome: 'selected', optionId: 'proceed_once' },
  ...(answers === undefined ? {} : { answers }),
});
export const CANCELLED = { outcome: { outcome: 'cancelled' } };
export const DECLINE = { outcome: { outcome: 'selected', optionId: 'cancel' } };
export const unattended = (reason: string) => ({ ...CANCELLED, _meta: { [CANCEL_REASON]: reason } });

export interface PeerOptions {
  readonly home?: Home;
  /** Another agent's program and its first arguments, in place of ours. */
  readonly command?: readonly [string, ...string[]];
  /** The switch; off unless set. */
  readonly restore?: boolean;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The scripted model's script; null for none, where `args` choose another model. */
  readonly script?: object | null;
  /** What the child is told at `initialize`; null for no `initialize` at all. */
  readonly initialize?: Partial<InitializeRequest> | null;
  /** Another build of the command line. */
  readonly cli?: string;
  /** Requests of the child that are answered, by their method, beside those for permission. */
  readonly serve?: Readonly<Record<string, Served>>;
}

/** `signal` aborts when the child withdraws the request. */
// biome-ignore lint/suspicious/noExplicitAny: params and results of every form
export type Served = (params: any, signal: AbortSignal) => any;

/** Updates that a client keeps beside the conversation. */
export const ABOUT_SESSION: readonly string[] = ['available_commands_update', 'session_info_update'];

/** Starts the real child on pipes. */
export function spawnChild(home: Home, options: Omit<PeerOptions, 'home'>): ChildProcessWithoutNullStreams {
  const args = ['--acp', ...(options.restore ? ['--restore-ask-user-question'] : [])];
  if (options.script !== null) {
    const folder = tempFolder({ 'script.json': JSON.stringify(options.script ?? RECORDED_SCRIPT) });
    args.push('--script', join(folder, 'script.json'));
  }
  const [program, ...first] = options.command ?? [process.execPath, options.cli ?? CLI];
  return spawn(program, [...first, ...args, ...(options.args ?? [])], {
    env: { PATH: process.env['PATH'], HOME: home.path, QWEN_HOME: home.path, ...options.env },
  });
}

/** The real child process with the ACP SDK's own client on its pipes. Ended with the test. */
export class Peer {
  readonly home: Home;
  readonly child: ChildProcessWithoutNullStreams;
  readonly connection: ClientConnection;
  /** Every message, in the order in which it passed. */
  readonly wire: { readonly dir: 'in' | 'out'; readonly message: AnyMessage }[] = [];
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  stderr = '';
  readonly #questions = new Inbox<Asked>();
  readonly #forms = new Inbox<Asked<CreateElicitationRequest>>();
  readonly #watching = new Set<() => void>();
  /** What `answer` was given, by the id of the request: the SDK's types would not let all of it through. */
  readonly #answers = new Map<unknown, unknown>();

  private constructor(options: PeerOptions) {
    this.home = options.home ?? new Home();
    this.child = spawnChild(this.home, options);
    this.exited = once(this.child, 'exit').then(([code, signal]) => ({ code, signal }));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.child.stdin.on('error', () => {});
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.exited;
    });
    const stream = ndJsonStream(
      Writable.toWeb(this.child.stdin),
      Readable.toWeb(this.child.stdout) as ReadableStream<Uint8Array>,
    );
    const app = client();
    for (const [method, serve] of Object.entries(options.serve ?? {})) {
      app.onRequest(method as 'fs/read_text_file', ({ params, signal }) => serve(params, signal));
    }
    this.connection = app
      .onNotification(methods.client.session.update, () => {})
      .onRequest(methods.client.session.requestPermission, ({ params, requestId, signal }) =>
        this.#ask(this.#questions, params, requestId, signal),
      )
      .onRequest(methods.client.elicitation.create, ({ params, requestId, signal }) =>
        this.#ask(this.#forms, params, requestId, signal),
      )
      .connect(this.#tapped(stream));
  }

  static async start(options: PeerOptions = {}): Promise<Peer> {
    const peer = new Peer(options);
    if (options.initialize !== null) {
      await peer.request('initialize', {
        protocolVersion: 1,
        clientInfo: { name: 'test', version: '1' },
        clientCapabilities: {},
        ...options.initialize,
      });
    }
    return peer;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every form
  request(method: string, params: unknown, signal?: AbortSignal): Promise<any> {
    return this.connection.agent.request(method, params, signal ? { cancellationSignal: signal } : {});
  }

  notify(method: string, params: unknown): Promise<void> {
    return this.connection.agent.notify(method, params);
  }

  async newSession(cwd = CWD): Promise<string> {
    return (await this.request('session/new', { cwd, mcpServers: [] })).sessionId;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every form
  load(sessionId: string, meta?: object): Promise<any> {
    return this.request('session/load', { sessionId, cwd: CWD, mcpServers: [], ...(meta && { _meta: meta }) });
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every form
  resume(sessionId: string, meta?: object): Promise<any> {
    return this.request('session/resume', { sessionId, cwd: CWD, mcpServers: [], ...(meta && { _meta: meta }) });
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every form
  prompt(sessionId: string, text: string, meta?: object): Promise<any> {
    const prompt = [{ type: 'text', text }];
    return this.request('session/prompt', { sessionId, prompt, ...(meta && { _meta: meta }) });
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every form
  restore(sessionId: string): Promise<any> {
    return this.request('session/prompt', { sessionId, prompt: [], _meta: { [RESTORE]: true } });
  }

  /** The next permission request that the child sends, or has sent and nobody took. */
  question(): Promise<Asked> {
    return this.#questions.take();
  }

  /** Answers each permission request from here on as it comes. */
  always(answer: (asked: Asked) => void): void {
    this.#questions.serve(answer);
  }

  /** The next form that the child sends, or has sent and nobody took. */
  form(): Promise<Asked<CreateElicitationRequest>> {
    return this.#forms.take();
  }

  /** Permission requests and forms that nobody took. */
  get unanswered(): number {
    return this.#questions.length + this.#forms.length;
  }

  /** Starts a turn that asks; resolves when the question is out. */
  async askIn(
    sessionId: string,
    text = '[[ask1]] ask',
  ): Promise<{ turn: Promise<{ stopReason: string }>; asked: Asked }> {
    const turn = this.prompt(sessionId, text);
    turn.catch(() => {});
    return { turn, asked: await this.question() };
  }

  /** What a session so far has said and done, in order. */
  updates(sessionId?: string): SessionUpdate[] {
    return this.allUpdates(sessionId).filter(({ sessionUpdate }) => !ABOUT_SESSION.includes(sessionUpdate));
  }

  /** The updates of a session so far, in order, with those about the session itself. */
  allUpdates(sessionId?: string): SessionUpdate[] {
    return this.wire.flatMap(({ dir, message }) => {
      if (dir !== 'in' || !('method' in message) || message.method !== 'session/update') return [];
      const params = message.params as { sessionId: string; update: SessionUpdate };
      return sessionId === undefined || params.sessionId === sessionId ? [params.update] : [];
    });
  }

  /** What the agent said so far. */
  said(): string {
    return this.updates()
      .flatMap((update) =>
        update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? [update.content.text] : [],
      )
      .join('');
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL') {
    this.child.kill(signal);
    return await this.exited;
  }

  /** Closes the child's input. */
  async eof() {
    this.child.stdin.end();
    return await this.exited;
  }

  /** Closes both pipes, as a client that died does. */
  async vanish() {
    this.child.stdin.destroy();
    this.child.stdout.destroy();
    return await this.exited;
  }

  /** Resolves when `is` holds, looked at now and after every message of the child. */
  async until(is: () => boolean): Promise<void> {
    if (is()) return;
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!is()) return;
        this.#watching.delete(look);
        resolve();
      };
      this.#watching.add(look);
    });
  }

  /** Answers once the child has handled everything that was sent before. */
  async roundTrip(): Promise<void> {
    await this.request('qwen/status/workspace/resource', {});
  }

  async #ask<P>(inbox: Inbox<Asked<P>>, params: P, id: unknown, signal: AbortSignal): Promise<never> {
    const { promise, resolve, reject } = deferred<never>();
    inbox.put({
      id,
      params,
      signal,
      answer: (result) => {
        this.#answers.set(id, result);
        resolve(CANCELLED as never);
      },
      refuse: (code, message) => reject(new RequestError(code, message)),
    });
    return await promise;
  }

  #tapped({ readable, writable }: Stream): Stream {
    const incoming = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        this.wire.push({ dir: 'in', message });
        for (const look of this.#watching) look();
        controller.enqueue(message);
      },
    });
    const outgoing = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        const sent = this.#asAnswered(message);
        this.wire.push({ dir: 'out', message: sent });
        controller.enqueue(sent);
      },
    });
    // It breaks when the child is killed, which is what many tests are about.
    outgoing.readable.pipeTo(writable).catch(() => {});
    return { readable: readable.pipeThrough(incoming), writable: outgoing.writable };
  }

  #asAnswered(message: AnyMessage): AnyMessage {
    if (!('id' in message) || 'method' in message || !this.#answers.has(message.id)) return message;
    const result = this.#answers.get(message.id);
    this.#answers.delete(message.id);
    return { jsonrpc: '2.0', id: message.id, result } as AnyMessage;
  }
}

/** What came, for whoever asks for it, before or after. */
class Inbox<T> {
  readonly #items: T[] = [];
  readonly #waiting: ((item: T) => void)[] = [];
  #always: ((item: T) => void) | undefined;

  get length(): number {
    return this.#items.length;
  }

  put(item: T): void {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(item);
    else if (this.#always) this.#always(item);
    else this.#items.push(item);
  }

  /** Takes each that nobody waits for, from here on. */
  serve(always: (item: T) => void): void {
    this.#always = always;
  }

  take(): Promise<T> {
    const item = this.#items.shift();
    return item === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(item);
  }
}

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
