import type { McpServer } from '@agentclientprotocol/sdk';
import type { Content, FunctionDeclaration, GenerateContentResponseUsageMetadata, Part } from '@google/genai';
import type { ToolFaultType } from './faults.ts';

/** Token counts of one model answer, in Gemini's own names, as the transcript stores them. */
export type UsageMetadata = GenerateContentResponseUsageMetadata;

/** Where a replayed event comes from. Live events carry none. */
export interface EventSource {
  /** `uuid` of the transcript record. */
  readonly recordId: string;
  /** The record's time, in milliseconds since the epoch. */
  readonly timestamp: number;
  /** Index of the message part, for user and agent text. */
  readonly segment?: number;
  /** The daemon's id of the prompt, where a daemon drove it. */
  readonly promptId?: string;
}

/**
 * What a session shows its client, live or replayed. The ACP half turns it into `session/update`.
 * `raw_result` is a recorded tool result whose JSON strings are copied from the file unparsed: each `*Json` is a complete
 * JSON value as UTF-8 bytes.
 */
export type SessionEvent =
  | { readonly kind: 'user_part'; readonly part: Part; readonly source?: EventSource }
  | {
      readonly kind: 'text';
      readonly text: string;
      readonly thought: boolean;
      /** It was printed by a command of the person's, not said by the model. */
      readonly command?: CommandOutput;
      readonly source?: EventSource;
    }
  | {
      readonly kind: 'usage';
      readonly usage: UsageMetadata;
      readonly durationMs?: number;
      readonly source?: EventSource;
    }
  /** How much of the model's context the conversation takes now; tokens. Live only, as is `title`. */
  | { readonly kind: 'context'; readonly used: number; readonly size: number; readonly source?: EventSource }
  /** What the session is called from now on. */
  | { readonly kind: 'title'; readonly title: string; readonly source?: EventSource }
  | {
      readonly kind: 'call';
      /** `preparing`: the model is still writing it, arguments are empty. `running`: it begins. `recorded`: replayed. */
      readonly phase: 'preparing' | 'running' | 'recorded';
      readonly callId: string;
      readonly name: string;
      readonly args: Readonly<Record<string, unknown>>;
      readonly source?: EventSource;
    }
  | {
      /** What a running call has to show: what it has said so far, or the client's terminal that it runs in. */
      readonly kind: 'progress';
      readonly callId: string;
      readonly name: string;
      readonly shown: { readonly text: string } | { readonly terminalId: string };
      readonly source?: EventSource;
    }
  | {
      readonly kind: 'result';
      readonly callId: string;
      readonly name: string;
      readonly ok: boolean;
      readonly text: string;
      /** The client's terminal that a command ran in: the card goes on showing it. */
      readonly terminalId?: string;
      /** Absolute: of the file that a live edit was about; `display` has its name only. */
      readonly path?: string;
      /** The record's `toolCallResult.resultDisplay`; goes out as `rawOutput`. */
      readonly display?: unknown;
      readonly source?: EventSource;
    }
  | {
      readonly kind: 'raw_result';
      readonly callIdJson: Uint8Array;
      readonly nameJson: Uint8Array;
      readonly textJson: Uint8Array;
      readonly displayJson?: Uint8Array;
      readonly ok: boolean;
      readonly source: EventSource;
    }
  /** A person ended the turn here. Replayed only: a client that sees it live gets the prompt's answer. */
  | { readonly kind: 'cancelled'; readonly turn: CancelledTurn; readonly source: EventSource };

/** What is known of a command's output beside its text. */
export interface CommandOutput {
  /** What a compression came to, as it is recorded. */
  readonly contextCompression?: Readonly<Record<string, unknown>>;
}

/** Times are milliseconds, `cancelledAt` since the epoch. */
export interface CancelledTurn {
  readonly promptId: string;
  readonly cancelledAt: number;
  readonly elapsedMs: number;
}

/** One question of `ask_user_question`, as the model wrote it. */
export interface Question {
  readonly question: string;
  readonly header: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
  readonly multiSelect?: boolean;
}

/** A call of `ask_user_question` that a person is to answer. */
export interface QuestionRequest {
  readonly sessionId: string;
  readonly callId: string;
  readonly questions: readonly Question[];
  /** The call's arguments, verbatim. */
  readonly args: Readonly<Record<string, unknown>>;
  /** True when the client has not been shown the call by an earlier update (after a resume). */
  readonly introduce: boolean;
}

/**
 * Why nobody decided a question. `dismissed`: it was put away without a decision, or refused by a client that had not asked
 * for it.
 */
export type UnattendedReason = 'timeout' | 'session_closed' | 'dismissed' | 'abort';

/** What came back from the client for one question, before its answers are read. */
export type QuestionReply =
  | {
      readonly kind: 'submitted';
      /** Candidates for the `answers` object, the one that wins first. */
      readonly answers: readonly unknown[];
    }
  | { readonly kind: 'declined' }
  | { readonly kind: 'unattended'; readonly reason: UnattendedReason }
  | { readonly kind: 'failed'; readonly message: string };

/** A file before and after a change, as whole texts; `oldText` is null for a file that is new. */
export interface FileChange {
  readonly path: string;
  readonly oldText: string | null;
  readonly newText: string;
}

/** What "always" covers in this session: calls with the same `key` are not asked about again. */
export interface ApprovalScope {
  readonly key: string;
  /** For the person, completing "Always allow …". */
  readonly label: string;
}

/** A call that a person is to allow or reject before it runs. */
export interface ApprovalRequest {
  readonly sessionId: string;
  /** The session's folder, which titles are relative to. */
  readonly cwd: string;
  readonly callId: string;
  readonly name: string;
  /** The call's arguments, verbatim. */
  readonly args: Readonly<Record<string, unknown>>;
  readonly change?: FileChange;
  /** Undefined where only this one call can be allowed. */
  readonly always?: ApprovalScope;
}

/** What came back from the client for one call that needs approval. */
export type ApprovalReply =
  | { readonly kind: 'allowed'; readonly always: boolean }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unattended'; readonly reason: UnattendedReason }
  | { readonly kind: 'failed'; readonly message: string };

/** What a tool does to the world; with the session's mode it decides whether a person is asked. */
export type ToolEffect = 'read' | 'note' | 'edit' | 'execute';

/** How a call ended, told by its tool. */
export interface ToolOutput {
  /** For the model; bounded by the tool. */
  readonly text: string;
  /** The record's `resultDisplay` and the update's `rawOutput`, in the reference's shapes. */
  readonly display?: unknown;
  /** False: the tool ran and what it did failed (a command's exit code is no failure of the tool). Default true. */
  readonly ok?: boolean;
  /** Of what failed; default `execution_failed`. */
  readonly errorType?: ToolFaultType;
}

/** A call whose arguments were checked; nothing has been changed yet. */
export interface PreparedCall {
  readonly change?: FileChange;
  readonly always?: ApprovalScope;
  /** Another effect than the tool's own, where the arguments decide. */
  readonly effect?: ToolEffect;
  /** Throws `ToolFault`; on abort the signal's reason, within a second: the turn does not wait longer. */
  run(): Promise<ToolOutput>;
}

/** The text files of a workspace, as the person's editor or the disk has them. */
export interface FileAccess {
  /** Undefined when there is no such file. Throws `ToolFault` for what is no text file or too large. */
  readText(path: string, signal: AbortSignal): Promise<string | undefined>;
  /** Creates missing folders. Throws `ToolFault`. */
  writeText(path: string, text: string, signal: AbortSignal): Promise<void>;
}

export interface ShellCommand {
  readonly callId: string;
  /** For the system's shell. */
  readonly command: string;
  /** Absolute. */
  readonly cwd: string;
  readonly timeoutMs: number;
}

export interface ShellResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
  /** stdout and stderr as they came, bounded; `truncated` says that some is missing. */
  readonly output: string;
  readonly truncated: boolean;
}

/** Where commands run: in the client's terminal or in a process group of ours. On abort nothing of the group is left. */
export interface Shell {
  /** `heard` is told the output so far, at most a few times a second. */
  run(command: ShellCommand, heard: (output: string) => void, signal: AbortSignal): Promise<ShellResult>;
}

/** What one call of a tool works with. */
export interface ToolContext {
  readonly sessionId: string;
  readonly callId: string;
  /** Absolute; with `roots` the folders that file tools are confined to. */
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly files: FileAccess;
  readonly shell: Shell;
  readonly signal: AbortSignal;
  /** Shows the person what a running call has said so far. */
  progress(text: string): void;
}

export interface Tool {
  readonly declaration: FunctionDeclaration & { readonly name: string };
  readonly effect: ToolEffect;
  /** Goes into the telemetry; default `native`. */
  readonly type?: 'native' | 'mcp';
  /** Checks the arguments and looks at what they are about; changes nothing. Throws `ToolFault`. */
  prepare(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<PreparedCall>;
}

/** The tools of one session. */
export interface ToolSet {
  readonly tools: readonly Tool[];
  /** For the person: one sentence for each MCP server that has failed and is down now. */
  readonly warnings?: readonly string[];
  /** Ends what they hold (MCP servers). Never rejects. */
  close(): Promise<void>;
}

/** What a client gave a session to work with. */
export interface ToolSetup {
  /** Absolute; beside the session's folder. */
  readonly roots: readonly string[];
  readonly mcpServers: readonly McpServer[];
}

/** A session's tools and where they work: in the client, as far as it offers that, or here. */
export interface Toolbox {
  readonly set: ToolSet;
  readonly files: FileAccess;
  /** `inTerminal` is told the client's terminal that a command runs in, if it runs in one. */
  shell(inTerminal: (terminalId: string) => void): Shell;
}

/** Makes the tools of a session; asked on its first prompt, and again when it was given other servers. */
export type ToolSource = (session: SessionRef, setup: ToolSetup) => Promise<Toolbox>;

/** A live session, as its client needs to know it. */
export interface SessionRef {
  readonly id: string;
  readonly cwd: string;
}

/** The person's side of a session, implemented by the ACP half. */
export interface SessionClient {
  /**
   * Order of calls is order on the wire. A promise is given only when the transport cannot take more, until it can: an
   * await costs more than an update.
   */
  update(session: SessionRef, event: SessionEvent): Promise<void> | undefined;
  /**
   * Puts the questions to the person, in the form that this client can show. Settles on the client's answer; on abort with
   * `{kind: 'unattended', reason: 'abort'}`, never rejects.
   */
  ask(request: QuestionRequest, signal: AbortSignal): Promise<QuestionReply>;
  /** As `ask`, for a call that needs approval. */
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalReply>;
  /** Text that the person queued during the turn; empty where the client keeps no queue. `promptId` is the daemon's own. */
  drainQueue(sessionId: string, promptId: string | undefined, signal: AbortSignal): Promise<readonly string[]>;
}

export interface ModelRequest {
  /** Every function call in it is followed by exactly one response. */
  readonly contents: readonly Content[];
  readonly systemInstruction: string;
  readonly tools: readonly FunctionDeclaration[];
  readonly signal: AbortSignal;
}

export type ModelFinish = 'stop' | 'max_tokens' | 'refusal';

/** What a model streams. Parts are the provider's own, verbatim: ids, thought signatures, unknown fields. */
export type ModelEvent =
  | { readonly kind: 'part'; readonly part: Part }
  | { readonly kind: 'usage'; readonly usage: UsageMetadata }
  | { readonly kind: 'finish'; readonly reason: ModelFinish; readonly responseId?: string };

/**
 * The one key of a call whose arguments were no JSON object: what the model wrote, as it wrote it. Such a call is no other
 * call with fewer arguments, so it must not run: the model is told, and calls again.
 */
export const UNREADABLE_ARGUMENTS = 'unreadable_arguments';

/** One provider with one model. */
export interface Model {
  /** As the provider names it; goes into the transcript. */
  readonly name: string;
  readonly authType: AuthType;
  /** Tokens; undefined when unknown. */
  readonly contextWindow?: number;
  /**
   * As many events in one array as came at once. Throws `ProviderFault` for what the provider refused, the signal's reason
   * on abort.
   */
  stream(request: ModelRequest): AsyncIterable<readonly ModelEvent[]>;
}

/** A model that a person may choose for a session. */
export interface ModelChoice {
  /** What `/model` takes. */
  readonly id: string;
  /** For the person, where it says more than the id. */
  readonly description?: string;
}

/** The models of a workspace. */
export interface ModelMenu {
  choices(cwd: string): Promise<readonly ModelChoice[]>;
  /** Throws `SessionFault`: `invalid_params` for what is no choice, `auth_required` naming the variable to set. */
  select(cwd: string, id: string): Promise<Model>;
}

export const AUTH_TYPES = ['gemini', 'vertex-ai', 'openai', 'anthropic', 'scripted'] as const;
export type AuthType = (typeof AUTH_TYPES)[number];

/** Resolves the model of a workspace on first use; throws `SessionFault` `auth_required` naming the variable to set. */
export type ModelSource = (cwd: string) => Promise<Model>;
