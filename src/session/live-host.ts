import type { Log } from '../log.ts';
import type { Chat } from './chat.ts';
import type { DanglingCall } from './dangling.ts';
import type {
  ApprovalReply,
  Model,
  PreparedCall,
  Question,
  QuestionReply,
  SessionClient,
  SessionEvent,
  SessionRef,
  Tool,
  Toolbox,
  ToolContext,
} from './ports.ts';
import type { ReplayGate } from './replay-gate.ts';
import { offeredTools, type SessionTools } from './session-tools.ts';
import type { InFlight, TurnHost } from './turn-host.ts';
import { unsolicitedReply } from './unsolicited.ts';

/** What a session lends its running turn. */
export interface Lent {
  readonly client: SessionClient;
  readonly chat: Chat;
  readonly model: Model;
  readonly signal: AbortSignal;
  readonly restoreAskUserQuestion: boolean;
  readonly promptId: string;
  /** The daemon's own id of the prompt. */
  readonly daemonPromptId?: string;
  readonly gate: ReplayGate;
  readonly tools: SessionTools;
  readonly log: Log;
  readonly mode: () => string;
  /** Whether nobody asked for this turn, so that a refusal decides nothing. */
  readonly unsolicited: () => boolean;
  /** Whether a question has to introduce its call to the client. */
  readonly introduce: () => boolean;
  readonly notices: { readonly take: () => readonly string[]; readonly landed: () => void };
}

/** The session as its running turn has it. */
export class LiveHost implements TurnHost {
  readonly #session: SessionRef;
  readonly #lent: Lent;
  /** With how long the file was then: a longer one holds it already. */
  #inFlight: { readonly what: InFlight; readonly size: number | undefined } | undefined;
  /** What the call that runs has shown last. */
  #progress: SessionEvent | undefined;
  #box: Promise<Toolbox | undefined> | undefined;
  /** The folders that go with the box. */
  #roots: readonly string[] = [];

  constructor(session: SessionRef, lent: Lent) {
    this.#session = session;
    this.#lent = lent;
  }

  get chat(): Chat {
    return this.#lent.chat;
  }

  get model(): Model {
    return this.#lent.model;
  }

  get signal(): AbortSignal {
    return this.#lent.signal;
  }

  get restoreAskUserQuestion(): boolean {
    return this.#lent.restoreAskUserQuestion;
  }

  get promptId(): string {
    return this.#lent.promptId;
  }

  get allowed(): Set<string> {
    return this.#lent.tools.allowed;
  }

  get inFlight(): InFlight | undefined {
    return this.#inFlight?.what;
  }

  set inFlight(what: InFlight | undefined) {
    this.#inFlight = what && { what, size: this.chat.store.tail?.size };
  }

  /** What the turn has shown that is not on disk yet. */
  unwritten(): readonly SessionEvent[] {
    if (this.#inFlight === undefined || this.#inFlight.size !== this.chat.store.tail?.size) return [];
    return [...this.#inFlight.what.shown(), ...(this.#progress ? [this.#progress] : [])];
  }

  say(speak: () => SessionEvent | undefined): Promise<void> | undefined {
    const { client, gate } = this.#lent;
    // Without a pause between this and the update: a load that begins meanwhile must see what was said, or be first.
    const sayNow = () => {
      const event = speak();
      if (event?.kind === 'progress') this.#progress = event;
      if (event?.kind === 'result') this.#progress = undefined;
      return event && client.update(this.#session, event);
    };
    if (gate.open) return sayNow();
    return (async () => {
      await gate.opened();
      await sayNow();
    })();
  }

  emit(event: SessionEvent): Promise<void> | undefined {
    return this.say(() => event);
  }

  show(event: SessionEvent): void {
    this.emit(event)?.catch((error: unknown) => this.#lent.log.warn('an update was not sent', error));
  }

  async ask(call: DanglingCall, questions: readonly Question[]): Promise<QuestionReply> {
    const { client, gate, introduce, unsolicited } = this.#lent;
    await gate.opened();
    const { id: callId, args } = call;
    const request = { sessionId: this.#session.id, callId, questions, args, introduce: introduce() };
    const reply = await client.ask(request, this.signal);
    return unsolicited() ? unsolicitedReply(reply) : reply;
  }

  async approve({ id: callId, name, args }: DanglingCall, { change, always }: PreparedCall): Promise<ApprovalReply> {
    const { client, gate } = this.#lent;
    await gate.opened();
    const request = {
      sessionId: this.#session.id,
      cwd: this.#session.cwd,
      callId,
      name,
      args,
      ...(change && { change }),
      ...(always && { always }),
    };
    return await client.approve(request, this.signal);
  }

  async tools(): Promise<readonly Tool[]> {
    return offeredTools(await this.#toolbox());
  }

  async tool(name: string): Promise<Tool | undefined> {
    return (await this.tools()).find(({ declaration }) => declaration.name === name);
  }

  async context({ id: callId }: DanglingCall, show: Parameters<TurnHost['context']>[1]): Promise<ToolContext> {
    const box = await this.#toolbox();
    if (box === undefined) throw new Error('a tool was found without a toolbox');
    return {
      sessionId: this.#session.id,
      callId,
      cwd: this.#session.cwd,
      roots: this.#roots,
      files: box.files,
      shell: box.shell((terminalId) => show({ terminalId })),
      signal: this.signal,
      progress: (text) => show({ text }),
    };
  }

  mode(): string {
    return this.#lent.mode();
  }

  broke(tool: string, error: unknown): void {
    this.#lent.log.error(`the tool ${tool} broke`, error);
  }

  drainQueue(): Promise<readonly string[]> {
    return this.#lent.client.drainQueue(this.#session.id, this.#lent.daemonPromptId, this.signal);
  }

  takeNotices(): readonly string[] {
    return this.#lent.notices.take();
  }

  noticesLanded(): void {
    this.#lent.notices.landed();
  }

  now(): number {
    return performance.now();
  }

  /** The turn keeps the tools and folders that it began with. */
  #toolbox(): Promise<Toolbox | undefined> {
    this.#box ??= this.#open();
    return this.#box;
  }

  async #open(): Promise<Toolbox | undefined> {
    const { tools } = this.#lent;
    this.#roots = tools.roots;
    const box = await tools.open(this.signal);
    // Of this moment and of no conversation: shown before the model speaks, and not recorded.
    const news = tools.news(box);
    if (news.length > 0) await this.emit({ kind: 'text', text: `${news.join('\n\n')}\n\n`, thought: false });
    return box;
  }
}
