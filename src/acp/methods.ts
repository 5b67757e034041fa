import type * as acp from '@agentclientprotocol/sdk';
import { RequestError } from './errors.ts';
import type { JsonObject } from './params.ts';
import { objectWith, optionalObject, parserOf } from './params.ts';
import type { NotificationMethod, Parser, RequestMethod } from './rpc.ts';

/**
 * ACP's protocol version. Restated, as is every method name here: a value import from the SDK would build all its
 * schemas at start-up. A test holds them equal to the SDK's.
 */
export const PROTOCOL_VERSION = 1;

/** How a daemon of the reference, and ours, names itself at `initialize`. */
export const DAEMON_CLIENT_NAMES: readonly string[] = ['qwen-serve-bridge', 'qwen-acp-serve'];

function request<P, R>(name: string, params: Parser<P>, result?: Parser<R>): RequestMethod<P, R> {
  return { name, aliases: aliasesOf(name), params, result };
}

function notification<P>(name: string, params: Parser<P>): NotificationMethod<P> {
  return { name, aliases: aliasesOf(name), params };
}

/** ACP keeps names without an underscore for itself, so the reference's methods are served under a conformant name too. */
function aliasesOf(name: string): readonly string[] {
  return name.startsWith('qwen/') || name.startsWith('craft/') ? [`_${name}`] : [];
}

// The agent's methods.

export const initialize = request<acp.InitializeRequest, acp.InitializeResponse>(
  'initialize',
  parserOf('InitializeRequest'),
  parserOf('InitializeResponse'),
);
export const authenticate = request<acp.AuthenticateRequest, acp.AuthenticateResponse>(
  'authenticate',
  parserOf('AuthenticateRequest'),
  objectWith(),
);
export const newSession = request<acp.NewSessionRequest, acp.NewSessionResponse>(
  'session/new',
  parserOf('NewSessionRequest'),
  objectWith('sessionId'),
);
export const loadSession = request<acp.LoadSessionRequest, acp.LoadSessionResponse>(
  'session/load',
  parserOf('LoadSessionRequest'),
  objectWith(),
);
export const resumeSession = request<acp.ResumeSessionRequest, acp.ResumeSessionResponse>(
  'session/resume',
  parserOf('ResumeSessionRequest'),
  objectWith(),
);
export const listSessions = request<acp.ListSessionsRequest, acp.ListSessionsResponse>(
  'session/list',
  parserOf('ListSessionsRequest'),
);
export const closeSession = request<acp.CloseSessionRequest, acp.CloseSessionResponse>(
  'session/close',
  parserOf('CloseSessionRequest'),
  objectWith(),
);
export const deleteSession = request<acp.DeleteSessionRequest, acp.DeleteSessionResponse>(
  'session/delete',
  parserOf('DeleteSessionRequest'),
  objectWith(),
);
export const prompt = request<acp.PromptRequest, acp.PromptResponse>(
  'session/prompt',
  parserOf('PromptRequest'),
  objectWith('stopReason'),
);
export const cancel = notification<acp.CancelNotification>('session/cancel', parserOf('CancelNotification'));
export const setMode = request<acp.SetSessionModeRequest, acp.SetSessionModeResponse>(
  'session/set_mode',
  parserOf('SetSessionModeRequest'),
  objectWith(),
);
export const setConfigOption = request<acp.SetSessionConfigOptionRequest, acp.SetSessionConfigOptionResponse>(
  'session/set_config_option',
  parserOf('SetSessionConfigOptionRequest'),
);

// The client's methods.

/** Checked for its session only: the daemon passes an update on as it came, and a burst of them must cost little. */
export const sessionUpdate = notification<acp.SessionNotification>('session/update', objectWith('sessionId'));
export const requestPermission = request<acp.RequestPermissionRequest, acp.RequestPermissionResponse>(
  'session/request_permission',
  parserOf('RequestPermissionRequest'),
  parserOf('RequestPermissionResponse'),
);
export const createElicitation = request<acp.CreateElicitationRequest, acp.CreateElicitationResponse>(
  'elicitation/create',
  objectWith('message'),
  parserOf('CreateElicitationResponse'),
);
export const readTextFile = request<acp.ReadTextFileRequest, acp.ReadTextFileResponse>(
  'fs/read_text_file',
  parserOf('ReadTextFileRequest'),
  parserOf('ReadTextFileResponse'),
);
export const writeTextFile = request<acp.WriteTextFileRequest, acp.WriteTextFileResponse | null>(
  'fs/write_text_file',
  parserOf('WriteTextFileRequest'),
);

export const createTerminal = request<acp.CreateTerminalRequest, acp.CreateTerminalResponse>(
  'terminal/create',
  objectWith('sessionId', 'command'),
  objectWith('terminalId'),
);
export const terminalOutput = request<acp.TerminalOutputRequest, acp.TerminalOutputResponse>(
  'terminal/output',
  objectWith('sessionId', 'terminalId'),
  objectWith('output'),
);
export const waitForTerminalExit = request<acp.WaitForTerminalExitRequest, acp.WaitForTerminalExitResponse>(
  'terminal/wait_for_exit',
  objectWith('sessionId', 'terminalId'),
  objectWith(),
);
export const killTerminal = request<acp.KillTerminalRequest, unknown>(
  'terminal/kill',
  objectWith('sessionId', 'terminalId'),
);
export const releaseTerminal = request<acp.ReleaseTerminalRequest, unknown>(
  'terminal/release',
  objectWith('sessionId', 'terminalId'),
);

// The reference's own methods on the child.

export interface SessionRef {
  readonly sessionId: string;
}
export interface WorkspaceRef {
  readonly cwd: string;
}

export interface LoadUpdatesParams extends SessionRef {
  readonly cwd: string;
}
export interface LoadUpdatesResult {
  /** `SessionUpdate`s with the record's id in their `_meta` and its time in `timestamp`. */
  readonly updates: readonly unknown[];
  /** ISO 8601; absent for an unknown session. */
  readonly startTime?: string;
  readonly lastUpdated?: string;
}
/** Reads a session's replay without starting it. */
export const loadUpdates = request<LoadUpdatesParams, LoadUpdatesResult>(
  'qwen/session/loadUpdates',
  objectWith('sessionId', 'cwd'),
  objectWith(),
);

export type Interruption = 'none' | 'interrupted_prompt' | 'interrupted_turn';
export interface ContinueResult {
  readonly accepted: boolean;
  readonly interruption: Interruption;
}
/** Asks whether the last turn was interrupted and can be gone on with. */
export const continueSession = request<SessionRef, ContinueResult>(
  'qwen/control/session/continue',
  objectWith('sessionId'),
  objectWith(),
);

export interface ControlCloseResult {
  readonly sessionId: string;
  readonly closed: boolean;
}
/** Ends a live session; also carries `drainTimeoutMs` (ms) and `onlyIfUnheld`. */
export const controlCloseSession = request<SessionRef & JsonObject, ControlCloseResult>(
  'qwen/control/session/close',
  objectWith('sessionId'),
  objectWith(),
);

export interface BranchParams extends SessionRef {
  readonly cwd: string;
  /** The name that is asked for; any type on the wire. */
  readonly name?: unknown;
}
export interface BranchResult {
  readonly newSessionId: string;
  readonly title: string;
  readonly displayName: string;
}
/** Copies a session's conversation into a new session. */
export const branchSession = request<BranchParams, BranchResult>(
  'qwen/control/session/branch',
  objectWith('sessionId', 'cwd'),
  objectWith('newSessionId'),
);

export interface CopySourcesParams extends SessionRef {
  readonly targetSessionId: string;
}
/** Copies attachments into a branched session. */
export const copySources = request<CopySourcesParams & JsonObject, { readonly warnings: readonly string[] }>(
  'qwen/session/sources/copy',
  objectWith('sessionId', 'targetSessionId'),
  objectWith(),
);

/** Cancels the running turn, as `session/cancel` does, and says whether there was one. */
export const cancelPendingPrompt = request<SessionRef, { readonly cancelled: boolean }>(
  'craft/cancelPendingPrompt',
  objectWith('sessionId'),
  objectWith(),
);

export const workspaceSkills = request<WorkspaceRef & JsonObject, JsonObject>(
  'qwen/status/workspace/skills',
  optionalObject(),
);
export const workspaceMcp = request<WorkspaceRef & JsonObject, JsonObject>(
  'qwen/status/workspace/mcp',
  optionalObject(),
);
export const initializeWorkspaceMcp = request<WorkspaceRef & JsonObject, { readonly accepted: boolean }>(
  'qwen/control/workspace/mcp/initialize',
  optionalObject(),
);
export interface ResourceStatus {
  readonly rssBytes: number;
  readonly cpuPercent: number;
  readonly heap: JsonObject;
}
export const workspaceResource = request<JsonObject, ResourceStatus>(
  'qwen/status/workspace/resource',
  optionalObject(),
);
export const sessionContext = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/context',
  objectWith('sessionId'),
);
export const sessionContextUsage = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/context_usage',
  objectWith('sessionId'),
);
export const sessionStats = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/stats',
  objectWith('sessionId'),
);
export const sessionSupportedCommands = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/supported_commands',
  objectWith('sessionId'),
);
export const sessionTasks = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/tasks',
  objectWith('sessionId'),
);

export const sessionAgents = request<SessionRef & JsonObject, JsonObject>(
  'qwen/status/session/agents',
  objectWith('sessionId'),
);
export const sessionTranscript = request<LoadUpdatesParams, JsonObject>(
  'qwen/status/session/transcript',
  objectWith('sessionId', 'cwd'),
);
export const sessionGoal = request<SessionRef & JsonObject, JsonObject>(
  'qwen/control/session/goal/get',
  objectWith('sessionId'),
);

export interface Ping {
  readonly v: 1;
  /** The reference's daemon counts from 0 and compares by identity. */
  readonly nonce: number | string;
}
/** The child gives the nonce back; anything else makes the daemon end it. */
export const channelPing = request<Ping, Ping>('qwen/status/channel/ping', ping, ping);

function ping(value: unknown): Ping {
  const { nonce } = objectWith<{ nonce?: unknown }>()(value);
  if (typeof nonce === 'number' || typeof nonce === 'string') return { v: 1, nonce };
  throw RequestError.invalidParams([{ path: '/nonce', message: 'must be number or string' }]);
}

// The reference's own methods on the daemon.

export interface DrainQueueParams extends SessionRef {
  readonly promptId?: string;
}
/** Asks the daemon for what the person typed during the turn. Its result is read by hand: it differs between daemons. */
export const drainMidTurnQueue = request<DrainQueueParams, unknown>('craft/drainMidTurnQueue', objectWith('sessionId'));

export interface ActiveWorkReport extends JsonObject {
  /** Of each live session; checked by hand. */
  readonly sessions?: unknown;
}
/** Says what keeps the child's sessions busy. */
export const activeWork = notification<ActiveWorkReport>('qwen/notify/channel/active-work', objectWith());

export interface PromptSuggestion extends SessionRef {
  readonly suggestion?: unknown;
  readonly promptId?: string;
}
/** Offers what the person might say next. */
export const promptSuggestion = notification<PromptSuggestion>(
  'qwen/notify/session/prompt-suggestion',
  objectWith('sessionId'),
);
