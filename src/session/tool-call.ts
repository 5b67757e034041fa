import { decideApproval } from './approval.ts';
import { type CallResult, cancelled, done, failure, type Step } from './call-result.ts';
import type { DanglingCall } from './dangling.ts';
import { ToolFault } from './faults.ts';
import {
  type ApprovalReply,
  type PreparedCall,
  type SessionEvent,
  type Tool,
  type ToolContext,
  type ToolOutput,
  UNREADABLE_ARGUMENTS,
} from './ports.ts';
import * as texts from './texts.ts';
import { wellFormed } from './well-formed.ts';

/** What one call of a tool needs of its turn. */
export interface ToolHost {
  readonly signal: AbortSignal;
  /** The session's, at this moment. */
  mode(): string;
  /** Undefined when there is none of that name. */
  tool(name: string): Promise<Tool | undefined>;
  /** `show` is given what the running call has to show. */
  context(call: DanglingCall, show: (shown: Progress) => void): Promise<ToolContext>;
  approve(call: DanglingCall, prepared: PreparedCall): Promise<ApprovalReply>;
  /** What a person has allowed for the whole session. */
  readonly allowed: Set<string>;
  /** Never rejects. */
  show(event: SessionEvent): void;
  /** To be told of a tool's own bug. */
  broke(tool: string, error: unknown): void;
  /** Milliseconds, monotonic. */
  now(): number;
}

type Progress = Extract<SessionEvent, { kind: 'progress' }>['shown'];

/** A tool that was told to stop is waited for as long as this, in ms: less than the connection waits for a turn. */
const STOP_GRACE_MS = 1_000;
/** UTF-16 units of what is said of a stopped call's output, and of a broken tool's error. */
const MAX_HEARD = 16_384;
const MAX_REASON = 300;

/** Checks a call, has it approved and runs it. `save` is awaited before a person is waited for and before anything changes. */
export async function runToolCall(call: DanglingCall, host: ToolHost, save: () => Promise<void>): Promise<Step> {
  const tool = await host.tool(call.name);
  if (host.signal.aborted) return ABORTED;
  if (tool === undefined) return done(failure(call, texts.unknownTool(call.name), 'tool_not_registered'), false);
  if (Object.hasOwn(call.args, UNREADABLE_ARGUMENTS)) {
    return done(failure(call, texts.UNREADABLE_CALL, 'invalid_tool_params'), false);
  }
  return await new ToolCall(call, tool, host).run(save);
}

const ABORTED: Step = { kind: 'unattended', reason: 'abort' };

class ToolCall {
  readonly #call: DanglingCall;
  readonly #tool: Tool;
  readonly #host: ToolHost;
  readonly #started: number;
  /** What the call has said so far, and where it runs; nothing more is shown once it has ended. */
  #heard = '';
  #terminalId: string | undefined;
  /** Of the file that the call is to change. */
  #path: string | undefined;
  #ended = false;

  constructor(call: DanglingCall, tool: Tool, host: ToolHost) {
    this.#call = call;
    this.#tool = tool;
    this.#host = host;
    this.#started = host.now();
  }

  async run(save: () => Promise<void>): Promise<Step> {
    const { signal } = this.#host;
    const context = await this.#host.context(this.#call, (shown) => this.#show(shown));
    const prepared = await within(async () => await this.#tool.prepare(this.#call.args, context), signal);
    if (signal.aborted || prepared.kind === 'ignored') return ABORTED;
    if (prepared.kind === 'threw') return this.#failed(prepared.error, 'not_started');
    this.#path = prepared.value.change?.path;
    const effect = prepared.value.effect ?? this.#tool.effect;
    const changes = effect === 'edit' || effect === 'execute';
    const refused = await this.#approve(prepared.value, effect, save);
    if (refused) return refused;
    if (changes) await save();
    if (signal.aborted) return ABORTED;
    const { id: callId, name, args } = this.#call;
    this.#host.show({ kind: 'call', phase: 'running', callId, name, args });
    const ended = await within(async () => wellFormed(await prepared.value.run()), signal);
    this.#ended = true;
    if (signal.aborted) return done(this.#stopped(ended), false, changes);
    if (ended.kind === 'done') return done(this.#result(ended.value), false, changes);
    return this.#failed(ended.kind === 'threw' ? ended.error : signal.reason, 'error', changes);
  }

  /** Why the call does not run; undefined when it may. */
  async #approve(prepared: PreparedCall, effect: Tool['effect'], save: () => Promise<void>): Promise<Step | undefined> {
    const { allowed } = this.#host;
    const key = prepared.always?.key;
    switch (decideApproval(this.#host.mode(), effect, key !== undefined && allowed.has(key))) {
      case 'run':
        return undefined;
      case 'refuse':
        return done(this.#failure(texts.refusedInPlanMode(this.#call.name), 'plan_mode'), false);
      case 'ask': {
        await save();
        const reply = await this.#host.approve(this.#call, prepared);
        if (reply.kind === 'allowed' && reply.always && key !== undefined) allowed.add(key);
        return reply.kind === 'allowed' ? undefined : this.#notAllowed(reply);
      }
    }
  }

  #notAllowed(reply: Exclude<ApprovalReply, { kind: 'allowed' }>): Step {
    const { name } = this.#call;
    switch (reply.kind) {
      case 'unattended':
        return reply;
      case 'rejected':
        return done(this.#typed(cancelled(this.#call, texts.declinedByPerson(name), this.#durationMs())), true);
      case 'failed':
        return done(this.#failure(texts.permissionFailed(name, reply.message), 'unhandled_exception'), true);
    }
  }

  #result({ text, display, ok = true, errorType = 'execution_failed' }: ToolOutput): CallResult {
    return this.#typed({
      call: this.#call,
      status: ok ? 'success' : 'error',
      response: ok ? { output: text } : { error: text },
      executionStatus: ok ? 'success' : 'error',
      ...(!ok && { errorType }),
      ...(display !== undefined && { display }),
      durationMs: this.#durationMs(),
    });
  }

  #failed(error: unknown, executionStatus: 'not_started' | 'error', changed = false): Step {
    if (error instanceof ToolFault) {
      return done({ ...this.#failure(error.message, error.type), executionStatus }, false, changed);
    }
    this.#host.broke(this.#call.name, error);
    const text = texts.toolBroke(this.#call.name, reasonOf(error));
    return done({ ...this.#failure(text, 'execution_failed'), executionStatus }, false, changed);
  }

  /** The turn was stopped while the call ran. */
  #stopped(ended: Ended<ToolOutput>): CallResult {
    const heard = ended.kind === 'done' ? ended.value.text : this.#heard;
    const text =
      ended.kind === 'ignored' ? texts.STILL_RUNNING : texts.stoppedWhileRunning(wellFormed(heard.slice(-MAX_HEARD)));
    return this.#typed({
      ...cancelled(this.#call, text, this.#durationMs()),
      executionStatus: 'error',
      ...(ended.kind === 'done' && ended.value.display !== undefined && { display: ended.value.display }),
    });
  }

  #failure(text: string, errorType: string): CallResult {
    return this.#typed(failure(this.#call, text, errorType, this.#durationMs()));
  }

  #typed(result: CallResult): CallResult {
    const terminal = this.#terminalId === undefined ? {} : { terminalId: this.#terminalId };
    const path = this.#path === undefined ? {} : { path: this.#path };
    return { ...result, toolType: this.#tool.type ?? 'native', ...terminal, ...path };
  }

  #show(shown: Progress): void {
    if (this.#ended) return;
    if ('text' in shown) this.#heard = shown.text;
    else this.#terminalId = shown.terminalId;
    // A terminal shows by itself what runs in it.
    if ('text' in shown && this.#terminalId !== undefined) return;
    const { id: callId, name } = this.#call;
    this.#host.show({ kind: 'progress', callId, name, shown: wellFormed(shown) });
  }

  #durationMs(): number {
    return this.#host.now() - this.#started;
  }
}

type Ended<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** It went on after it was told to stop. */
  | { readonly kind: 'ignored' };

/** Does `work`, which is told by `signal` to stop and then has a moment to do so. */
async function within<T>(work: () => Promise<T>, signal: AbortSignal): Promise<Ended<T>> {
  let timer: NodeJS.Timeout | undefined;
  let giveUp = () => {};
  const ignored = new Promise<Ended<T>>((resolve) => {
    giveUp = () => {
      timer = setTimeout(() => resolve({ kind: 'ignored' }), STOP_GRACE_MS);
    };
  });
  if (signal.aborted) giveUp();
  signal.addEventListener('abort', giveUp, { once: true });
  const ended = work().then(
    (value): Ended<T> => ({ kind: 'done', value }),
    (error: unknown): Ended<T> => ({ kind: 'threw', error }),
  );
  try {
    return await Promise.race([ended, ignored]);
  } finally {
    signal.removeEventListener('abort', giveUp);
    clearTimeout(timer);
  }
}

/** One line, without a stack. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '').slice(0, MAX_REASON);
}
