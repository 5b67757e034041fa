import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import type { StopKind } from './batch.ts';
import type { Chat } from './chat.ts';
import type { DanglingCall } from './dangling.ts';
import { callIdsOf, decideRestore, type Eligibility, findRestorableAskUserQuestion } from './eligibility.ts';
import { classifyInterruption, continuation, type Interruption } from './interruption.ts';
import { LiveHost } from './live-host.ts';
import type { Model, ModelMenu, SessionClient, SessionEvent, ToolSetup, ToolSource } from './ports.ts';
import { ReplayGate } from './replay-gate.ts';
import { SessionTools } from './session-tools.ts';
import { type PromptEnd, type PromptRequest, TrackedTurn } from './tracked-turn.ts';
import { stopKindOf, type TurnHost, TurnStopped } from './turn-host.ts';
import { askAgain, beginTurn } from './turn-start.ts';
import { isUnsolicited } from './unsolicited.ts';

export interface SessionDeps {
  readonly client: SessionClient;
  readonly model: (cwd: string) => Promise<Model>;
  readonly tools: ToolSource;
  /** The models that `/model` offers. */
  readonly menu?: ModelMenu;
  readonly restoreAskUserQuestion: boolean;
  /** The git branch of a folder now; undefined outside a repository. */
  readonly gitBranch: (cwd: string) => string | undefined;
  readonly log: Log;
}

interface Running {
  readonly request: PromptRequest;
  readonly stop: AbortController;
  readonly turn: Promise<PromptEnd>;
  readonly ended: Promise<void>;
}

const NOTHING_DONE: PromptEnd = { stopReason: 'end_turn' };

/** One live session: its turns, one at a time, and which questions can be asked again. */
export class Session {
  readonly id: string;
  mode = 'default';
  /** Milliseconds since the epoch. */
  readonly startedAt = Date.now();
  readonly #deps: SessionDeps;
  #chat: Chat;
  /** Calls that some load has left to be asked again. */
  readonly #open = new Set<string>();
  #running: Running | undefined;
  /** The running turn's side of the session. */
  #host: LiveHost | undefined;
  readonly #gate = new ReplayGate();
  readonly #tools: SessionTools;
  /** Our own restores that the client has asked for meanwhile. */
  readonly #joined = new WeakSet<PromptRequest>();
  /** Whether the client has been shown the conversation by a replay. */
  #introduced = false;
  #prompts = 0;
  #notices: readonly string[] = [];
  /** The model that was chosen for this session. */
  #model: Model | undefined;

  constructor(id: string, chat: Chat, deps: SessionDeps) {
    this.id = id;
    this.#chat = chat;
    this.#deps = deps;
    this.#tools = new SessionTools(this, deps.tools, deps.log);
  }

  get cwd(): string {
    return this.#chat.cwd;
  }

  get chat(): Chat {
    return this.#chat;
  }

  /** The model that its next turn asks. Throws `SessionFault` where there is none. */
  async model(): Promise<Model> {
    return this.#model ?? (await this.#deps.model(this.cwd));
  }

  get busy(): boolean {
    return this.#running !== undefined;
  }

  /** Takes what the client that attached last gave to work with; a running turn keeps what it has. */
  configure(setup: ToolSetup): void {
    this.#tools.configure(setup);
    if (!this.busy) void this.#tools.retire();
  }

  /** Takes the conversation as it is on disk now, after another process wrote to it. */
  reread(chat: Chat): void {
    this.#chat = chat;
    this.#open.clear();
  }

  /** The one decision of a load or resume. What it opens stays open until it is answered or overtaken. */
  open(suppressed: boolean): Eligibility {
    const eligibility = decideRestore(
      { switchedOn: this.#deps.restoreAskUserQuestion, suppressed, promptInFlight: this.busy },
      () => this.#chat.lastEntry(),
    );
    for (const id of callIdsOf(eligibility)) this.#open.add(id);
    return eligibility;
  }

  /** The calls that a running turn still works on; a load finalizes none of them. */
  waiting(): ReadonlySet<string> {
    if (!this.busy) return new Set();
    // What was just recorded is on disk a moment before the chat knows it.
    const calls = [...this.#chat.dangling(), ...(this.#host?.inFlight?.calls ?? [])];
    return new Set(calls.map(({ id }) => id));
  }

  /** What the running turn has shown that is not on disk yet. */
  inFlight(): readonly SessionEvent[] {
    return this.#host?.unwritten() ?? [];
  }

  /**
   * Runs `show` while live updates wait, until what `delivered` then gives has settled; replays of one session follow each
   * other. `delivered` is called only when `show` has succeeded, before this resolves.
   */
  async showing<T>(show: () => Promise<T>, delivered: () => Promise<void>): Promise<T> {
    const result = await this.#gate.showing(show, delivered);
    this.#introduced = true;
    return result;
  }

  /** The client attached without a replay: it has not seen the calls. */
  attachedUnseen(): void {
    this.#introduced = false;
  }

  /**
   * Runs a turn. An ordinary prompt ends the running turn first; a restore or continue that meets one leaves it alone, but
   * for a restore that we began ourselves, which it joins. `outside` stops it with its reason. Throws `SessionFault` and
   * `ProviderFault`.
   */
  async prompt(request: PromptRequest, outside?: AbortSignal): Promise<PromptEnd> {
    if (request.kind !== 'prompt' && this.#running) return await this.#meet(this.#running, request, outside);
    const before = this.#running?.ended;
    this.stop('superseded');
    const stop = new AbortController();
    const forget = stopBy(stop, outside);
    const turn = (async () => {
      await before;
      return stop.signal.aborted ? { stopReason: 'cancelled' as const } : await this.#run(request, stop.signal);
    })();
    const running: Running = { request, stop, turn, ended: turn.then(ignore, ignore) };
    this.#running = running;
    try {
      return await turn;
    } finally {
      forget();
      if (this.#running === running) this.#running = undefined;
    }
  }

  /** What a restore or continue that meets a running turn comes to. */
  async #meet(
    { request: own, turn, stop }: Running,
    request: PromptRequest,
    outside?: AbortSignal,
  ): Promise<PromptEnd> {
    const joins = request.kind === 'restore' && !request.unsolicited && isUnsolicited(own);
    if (!joins) return NOTHING_DONE;
    // From here on the client stands behind what it is asked, and its refusal is one.
    this.#joined.add(own);
    const forget = stopBy(stop, outside);
    try {
      return await turn;
    } finally {
      forget();
    }
  }

  /** Stops the running turn, if there is one. */
  stop(kind: StopKind): boolean {
    if (this.#running === undefined) return false;
    this.#running.stop.abort(new TurnStopped(kind));
    return true;
  }

  /** Resolves when no turn runs and everything is written. */
  async settled(): Promise<void> {
    await this.#running?.ended;
    await this.#chat.store.settled();
  }

  /** Resolves when no turn runs, everything is written and the tools have ended. */
  async ended(): Promise<void> {
    await this.settled();
    await this.#tools.close();
  }

  /** Whether the last turn can be gone on with. */
  async interruption(): Promise<{ readonly accepted: boolean; readonly interruption: Interruption }> {
    if (this.busy || this.#restorable() !== undefined) return { accepted: false, interruption: 'none' };
    return continuation(false, await this.#chat.history());
  }

  /** The trailing batch, when the switch is on and every call of it was opened by a load. */
  #restorable(): readonly DanglingCall[] | undefined {
    if (!this.#deps.restoreAskUserQuestion) return undefined;
    const found = findRestorableAskUserQuestion(this.#chat.lastEntry());
    if (!('calls' in found) || !found.calls.every(({ id }) => this.#open.has(id))) return undefined;
    return found.calls.map(({ id, name, args }) => ({ id, name: name ?? '', args: args ?? {} }));
  }

  async #run(request: PromptRequest, signal: AbortSignal): Promise<PromptEnd> {
    const restorable = this.#restorable();
    if (request.kind === 'restore' && restorable === undefined) return NOTHING_DONE;
    if (request.kind === 'continue') {
      const interruption = classifyInterruption(await this.#chat.history());
      if (restorable !== undefined || interruption === 'none') return NOTHING_DONE;
    }
    const model = await this.model();
    this.#prompts = Math.max(this.#prompts, this.#chat.lastPrompt()) + 1;
    const turn = new TrackedTurn(request, `${this.id}########${this.#prompts}`, this.#chat);
    const host = this.#hostOf(model, signal, turn.promptId, request);
    const use = (chosen: Model) => {
      this.#model = chosen;
    };
    const tell = (notices: readonly string[]) => {
      this.#notices = notices;
    };
    try {
      const outcome =
        request.kind === 'restore' && restorable !== undefined
          ? await askAgain(host, restorable, this.#deps.gitBranch, tell)
          : await beginTurn(host, request, { menu: this.#deps.menu, use });
      const end = await turn.end(outcome, stopKindOf(signal));
      failpoint('turn_ended');
      return end;
    } catch (error) {
      await turn
        .failed(error)
        .catch((failure: unknown) => this.#deps.log.warn('the end of a turn was not recorded', failure));
      throw error;
    } finally {
      this.#host = undefined;
      void this.#tools.retire();
    }
  }

  #hostOf(model: Model, signal: AbortSignal, promptId: string, request: PromptRequest): TurnHost {
    const { kind, invocation } = request;
    const host = new LiveHost(this, {
      ...this.#deps,
      chat: this.#chat,
      model,
      signal,
      promptId,
      ...(invocation?.promptId !== undefined && { daemonPromptId: invocation.promptId }),
      gate: this.#gate,
      tools: this.#tools,
      mode: () => this.mode,
      unsolicited: () => isUnsolicited(request) && !this.#joined.has(request),
      introduce: () => kind === 'restore' && !this.#introduced,
      notices: { take: () => this.#notices, landed: () => this.#forgetNotices() },
    });
    this.#host = host;
    return host;
  }

  #forgetNotices(): void {
    this.#notices = [];
  }
}

/** Has `outside` stop the turn, with its reason, until what this gives is called. */
function stopBy(stop: AbortController, outside: AbortSignal | undefined): () => void {
  const abort = () => stop.abort(outside?.reason);
  if (outside?.aborted) abort();
  outside?.addEventListener('abort', abort, { once: true });
  return () => outside?.removeEventListener('abort', abort);
}

function ignore(): void {}
