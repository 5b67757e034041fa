import type { Home } from './home.ts';
import { RESTORE } from './names.ts';
import { type Asked, Peer, type Reply } from './peer.ts';
import type { Exit, Program } from './program.ts';
import { expect, Unmet, within } from './verdicts.ts';
import { type Frame, isNotification, isObject, type Json } from './wire.ts';

/** A turn that runs. */
export interface Running {
  /** Its `session/prompt`. */
  readonly sent: Frame;
  /** The answer to it. */
  readonly done: Promise<Reply>;
}

/** A running agent and the kit's client on its pipes. */
export class Agent {
  readonly program: Program;
  readonly peer: Peer;
  readonly home: Home;
  /** The result of `initialize`. */
  initialized: Json;
  readonly #patience: number;

  constructor(program: Program, home: Home, patience: number) {
    this.program = program;
    this.home = home;
    this.#patience = patience;
    this.peer = new Peer(program, patience);
  }

  /** `patience`: starting may take longer than answering. */
  async initialize(params: object = {}, patience = this.#patience): Promise<Json> {
    this.initialized = await this.peer.call('initialize', { ...HELLO, ...params }, patience);
    return this.initialized;
  }

  /** A session's id. */
  async newSession(cwd = this.home.cwd): Promise<string> {
    const { sessionId } = await this.peer.call('session/new', { cwd, mcpServers: [] });
    expect(typeof sessionId === 'string', 'session/new gives no sessionId', this.peer.frames.at(-1));
    return sessionId;
  }

  load(sessionId: string, meta?: object): Promise<Reply> {
    return this.#open('session/load', sessionId, meta);
  }

  resume(sessionId: string, meta?: object): Promise<Reply> {
    return this.#open('session/resume', sessionId, meta);
  }

  /** Starts a turn and does not wait for its end. */
  start(sessionId: string, text: string, meta?: object): Running {
    return this.prompt(sessionId, [{ type: 'text', text }], meta);
  }

  /** Starts a turn with this content. */
  prompt(sessionId: string, prompt: readonly object[], meta?: object): Running {
    const id = this.peer.freshId();
    const params = { sessionId, prompt, ...(meta && { _meta: meta }) };
    const sent = this.peer.send({ jsonrpc: '2.0', id, method: 'session/prompt', params });
    const done = this.peer.reply(id, 'the answer to session/prompt', { after: sent });
    // A check that waits for something else first must not make its failure an unhandled one.
    done.catch(() => {});
    return { sent, done };
  }

  /** Has one turn with this text; resolves with its answer. */
  async say(sessionId: string, text: string): Promise<Reply> {
    return await this.start(sessionId, text).done;
  }

  /** Starts a turn that asks a person something, and waits for the request. */
  async askIn(sessionId: string, text: string): Promise<Running & { readonly asked: Asked }> {
    const turn = this.start(sessionId, text);
    return { ...turn, asked: await this.#permissionOf(turn) };
  }

  /** Sends the prompt that asks open questions again, and waits for the first. */
  async restore(sessionId: string): Promise<Running & { readonly asked: Asked }> {
    const turn = this.startRestore(sessionId);
    return { ...turn, asked: await this.#permissionOf(turn) };
  }

  startRestore(sessionId: string): Running {
    return this.prompt(sessionId, [], { [RESTORE]: true });
  }

  /** `session/update` notifications of a session so far, in order; `after` a frame only. */
  updates(sessionId: string, after?: Frame): Frame[] {
    const from = after === undefined ? 0 : this.peer.frames.indexOf(after) + 1;
    return this.peer.frames.slice(from).filter((frame) => isUpdate(frame, sessionId));
  }

  /** The updates of one tool call, its introduction too. */
  updatesOf(sessionId: string, toolCallId: string, after?: Frame): Frame[] {
    return this.updates(sessionId, after).filter((frame) => updateOf(frame)?.toolCallId === toolCallId);
  }

  /** All text that the agent said in a session. */
  said(sessionId: string, after?: Frame): string {
    const chunks = this.updates(sessionId, after).map(updateOf);
    return chunks
      .map((update) => (update?.sessionUpdate === 'agent_message_chunk' ? update.content?.text : ''))
      .join('');
  }

  /** Closes its stdin and waits for its end. */
  async hangUp(patience = this.#patience): Promise<Exit> {
    this.program.stdin.end();
    return await within(this.program.exited, patience, 'the end of the agent after its stdin was closed');
  }

  /** Sends a signal and waits for its end. */
  async stop(signal: NodeJS.Signals): Promise<Exit> {
    this.program.signal(signal);
    return await within(this.program.exited, this.#patience, `the end of the agent after ${signal}`);
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    await this.program.kill();
  }

  async #open(method: string, sessionId: string, meta?: object): Promise<Reply> {
    const params = { sessionId, cwd: this.home.cwd, mcpServers: [], ...(meta && { _meta: meta }) };
    return await this.peer.request(method, params);
  }

  async #permissionOf({ sent, done }: Running): Promise<Asked> {
    const early = done.then(({ frame }) => {
      throw new Unmet('the turn ended without a permission request', frame);
    });
    early.catch(() => {});
    const asked = await Promise.race([this.peer.permission(), early]);
    expect(
      this.peer.frames.indexOf(asked.frame) > this.peer.frames.indexOf(sent),
      'a permission request of another turn',
      asked.frame,
    );
    return asked;
  }
}

const HELLO = {
  protocolVersion: 1,
  clientInfo: { name: 'acp-conformance', title: 'ACP conformance kit', version: '1' },
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
};

export const isUpdate = (frame: Frame, sessionId?: string): boolean =>
  isNotification(frame) &&
  frame.value.method === 'session/update' &&
  (sessionId === undefined || frame.value.params?.sessionId === sessionId);

/** What an update says. */
export const updateOf = (frame: Frame): Json =>
  isObject(frame.value?.params?.update) ? frame.value.params.update : undefined;
