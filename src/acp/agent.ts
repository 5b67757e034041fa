import { isAbsolute } from 'node:path';
import type * as acp from '@agentclientprotocol/sdk';
import type { Log } from '../log.ts';
import {
  initializeResultMeta,
  type LoadReplay,
  loadResponseMeta,
  promptResponseMeta,
  readInitializeMeta,
  readLoadMeta,
  readNewSessionMeta,
  readPromptMeta,
} from '../meta/meta.ts';
import { AUTH_METHODS } from '../model/auth-methods.ts';
import type { SelectableModelSource } from '../model/choose.ts';
import type { StopKind } from '../session/batch.ts';
import { SessionFault } from '../session/faults.ts';
import type { ToolSetup } from '../session/ports.ts';
import type { Session } from '../session/session.ts';
import type { Loaded, LoadedReplay, Sessions } from '../session/sessions.ts';
import type { PromptEnd, PromptRequest } from '../session/tracked-turn.ts';
import { TurnStopped } from '../session/turn-host.ts';
import { type ClientIdentity, identityOf } from './ask.ts';
import { availableCommandsUpdate } from './commands.ts';
import type { Connection } from './connection.ts';
import { promptParts } from './content.ts';
import { HangUpError, RequestError } from './errors.ts';
import { sessionPage } from './listing.ts';
import * as methods from './methods.ts';
import { configOptions, isMode, MODE_OPTION, modeState } from './modes.ts';
import { bulkReplay, replayUpdates } from './pages.ts';
import { streamReplay } from './replays.ts';
import { askAgainAfter } from './self-restore.ts';
import type { AfterResponse } from './serving.ts';
import * as status from './status.ts';

export interface AgentDeps {
  readonly connection: Connection;
  readonly sessions: Sessions;
  readonly models: SelectableModelSource;
  readonly version: string;
  readonly restoreAskUserQuestion: boolean;
  /** The process was started for a client that knows ACP only. */
  readonly plainClient: boolean;
  readonly log: Log;
  /** The guard's value that a parent daemon asks to be acknowledged by the environment. */
  readonly externalToolGuard: string | undefined;
  /** What ends the turns when the connection does. */
  readonly stopKind: () => StopKind;
}

/** The agent's side of ACP: one line a method; each hands over to the session it names. */
export class Agent {
  readonly #deps: AgentDeps;
  readonly #client: ClientIdentity;
  #resources: status.ResourceMeter | undefined;

  constructor(deps: AgentDeps, client: ClientIdentity) {
    this.#deps = deps;
    this.#client = client;
  }

  serve(): void {
    const { connection, sessions, models } = this.#deps;
    connection.onRequest(methods.initialize, (params) => this.#initialize(params));
    connection.onRequest(methods.authenticate, ({ methodId }) => {
      models.authenticate(methodId);
      return {};
    });
    connection.onRequest(methods.newSession, (params, _, afterResponse) => this.#newSession(params, afterResponse));
    connection.onRequest(methods.loadSession, (params, _, afterResponse) => this.#load(params, afterResponse));
    connection.onRequest(methods.resumeSession, (params, _, afterResponse) => this.#resume(params, afterResponse));
    connection.onRequest(methods.listSessions, (params) =>
      sessionPage(sessions, { ...params, cwd: typeof params.cwd === 'string' ? absolute(params.cwd) : null }),
    );
    connection.onRequest(methods.closeSession, ({ sessionId }) => this.#close(sessionId));
    connection.onRequest(methods.deleteSession, ({ sessionId }) => this.#delete(sessionId));
    connection.onRequest(methods.prompt, (params, signal) => this.#prompt(params, signal));
    connection.onNotification(methods.cancel, ({ sessionId }) => void sessions.find(sessionId)?.stop('cancel'));
    connection.onRequest(methods.setMode, ({ sessionId, modeId }) => this.#setMode(sessionId, modeId));
    connection.onRequest(methods.setConfigOption, (params) => this.#setConfigOption(params));
    this.#serveReferenceMethods();
    this.#serveStatusMethods();
  }

  #serveReferenceMethods(): void {
    const { connection, sessions } = this.#deps;
    connection.onRequest(methods.loadUpdates, (params) => this.#loadUpdates(params));
    connection.onRequest(methods.continueSession, ({ sessionId }) => this.#session(sessionId).interruption());
    connection.onRequest(methods.controlCloseSession, async ({ sessionId }) => {
      await this.#close(sessionId);
      return { sessionId, closed: true };
    });
    connection.onRequest(methods.branchSession, ({ sessionId, cwd, name }) =>
      named(sessionId, () => sessions.branch(sessionId, absolute(cwd), typeof name === 'string' ? name : undefined)),
    );
    connection.onRequest(methods.copySources, ({ sessionId }) => {
      this.#session(sessionId);
      return { warnings: [] };
    });
    connection.onRequest(methods.cancelPendingPrompt, ({ sessionId }) => ({
      cancelled: this.#session(sessionId).stop('cancel'),
    }));
  }

  #serveStatusMethods(): void {
    const { connection } = this.#deps;
    connection.onRequest(methods.channelPing, ({ nonce }) => ({ v: 1, nonce }));
    connection.onRequest(methods.workspaceSkills, ({ cwd }) => status.skillsStatus(cwd));
    connection.onRequest(methods.workspaceMcp, ({ cwd }) => status.mcpStatus(cwd));
    connection.onRequest(methods.initializeWorkspaceMcp, () => ({ accepted: true }));
    connection.onRequest(methods.workspaceResource, () => {
      this.#resources ??= new status.ResourceMeter();
      return this.#resources.read();
    });
    const session = (ref: methods.SessionRef) => this.#session(ref.sessionId);
    connection.onRequest(methods.sessionContext, (ref) => status.contextStatus(session(ref), shape(session(ref))));
    connection.onRequest(methods.sessionContextUsage, async (ref) => {
      const { contextUsage } = await import('./context-usage.ts');
      return await contextUsage(session(ref), ref['detail'] === true);
    });
    connection.onRequest(methods.sessionStats, (ref) => status.statsStatus(session(ref)));
    connection.onRequest(methods.sessionSupportedCommands, (ref) => status.commandsStatus(session(ref)));
    connection.onRequest(methods.sessionTasks, (ref) => status.tasksStatus(session(ref)));
    connection.onRequest(methods.sessionAgents, (ref) => status.tasksStatus(session(ref)));
    connection.onRequest(methods.sessionGoal, (ref) => status.goalStatus(session(ref)));
    connection.onRequest(methods.sessionTranscript, ({ sessionId, cwd }) =>
      named(sessionId, async () => status.transcriptStatus(sessionId, await this.#savedUpdates(sessionId, cwd))),
    );
  }

  #initialize(params: acp.InitializeRequest): acp.InitializeResponse {
    const { externalToolGuard, plainClient, version } = this.#deps;
    const asked = readInitializeMeta(params._meta);
    Object.assign(this.#client, identityOf(params, plainClient));
    const guard = externalToolGuard ?? asked.externalToolGuard;
    const meta = initializeResultMeta({
      channelLiveness: asked.channelLiveness,
      ...(guard !== undefined && { externalToolGuard: guard }),
    });
    return {
      protocolVersion: methods.PROTOCOL_VERSION,
      agentInfo: { name: 'qwen-acp', title: 'Qwen ACP', version },
      authMethods: AUTH_METHODS.map((method) => ({ ...method })),
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
      },
      ...(meta && { _meta: meta }),
    };
  }

  async #newSession(
    { cwd, _meta, ...given }: acp.NewSessionRequest,
    afterResponse: AfterResponse,
  ): Promise<acp.NewSessionResponse> {
    const { sessionId } = readNewSessionMeta(_meta);
    const session = await this.#deps.sessions.create(absolute(cwd), sessionId, setupOf(given));
    afterResponse(() => this.#announceCommands(session.id));
    return { sessionId: session.id, ...shape(session) };
  }

  async #load(
    { sessionId, cwd, _meta, ...given }: acp.LoadSessionRequest,
    afterResponse: AfterResponse,
  ): Promise<acp.LoadSessionResponse> {
    const { suppressRestore, replay } = readLoadMeta(_meta);
    const { connection, sessions } = this.#deps;
    const show = async (loaded: LoadedReplay) => {
      const announce = () => this.#announceCommands(loaded.session.id);
      const bulk = replay.mode === 'bulk' ? await bulkReplay(loaded, replay.pageSize) : undefined;
      if (bulk === undefined) await streamReplay(loaded, (lines) => connection.notifyRaw(lines));
      // As the reference does for a daemon, which takes what comes before the response for a part of the replay.
      if (bulk !== undefined || this.#client.isDaemon) afterResponse(announce);
      else announce();
      this.#askAgainAfter(loaded, afterResponse);
      return this.#loaded(loaded, bulk);
    };
    const delivered = () => responseDelivered(connection, afterResponse);
    const setup = setupOf(given);
    return await named(sessionId, () =>
      sessions.load(sessionId, absolute(cwd), suppressRestore, setup, show, delivered),
    );
  }

  async #resume(
    { sessionId, cwd, _meta, ...given }: acp.ResumeSessionRequest,
    afterResponse: AfterResponse,
  ): Promise<acp.ResumeSessionResponse> {
    const { suppressRestore } = readLoadMeta(_meta);
    const { sessions } = this.#deps;
    const setup = setupOf(given);
    const loaded = await named(sessionId, () => sessions.resume(sessionId, absolute(cwd), suppressRestore, setup));
    afterResponse(() => this.#announceCommands(loaded.session.id));
    this.#askAgainAfter(loaded, afterResponse);
    return this.#loaded(loaded);
  }

  /** A plain client will not send the restore prompt that the hint calls for. */
  #askAgainAfter(loaded: Loaded, afterResponse: AfterResponse): void {
    if (!this.#deps.plainClient || this.#client.isDaemon) return;
    askAgainAfter(loaded, afterResponse, (signal, prompt) => this.#untilStopped(signal, prompt), this.#deps);
  }

  #loaded({ session, open }: Loaded, replay?: LoadReplay): acp.LoadSessionResponse {
    const meta = loadResponseMeta({ open: open.size > 0, ...(replay && { replay }) });
    return { ...shape(session), _meta: meta };
  }

  async #savedUpdates(sessionId: string, cwd: string): Promise<methods.LoadUpdatesResult> {
    return await this.#deps.sessions.peek(sessionId, absolute(cwd), (replay) => replayUpdates(replay, cwd));
  }

  async #loadUpdates({ sessionId, cwd }: methods.LoadUpdatesParams): Promise<methods.LoadUpdatesResult> {
    try {
      return await this.#savedUpdates(sessionId, cwd);
    } catch (error) {
      if (error instanceof SessionFault && error.kind === 'unknown_session') return { updates: [] };
      throw error;
    }
  }

  async #close(sessionId: string): Promise<Record<string, never>> {
    this.#session(sessionId);
    await this.#deps.sessions.close(sessionId);
    return {};
  }

  async #delete(sessionId: string): Promise<Record<string, never>> {
    await this.#deps.sessions.delete(sessionId);
    return {};
  }

  async #prompt({ sessionId, prompt, _meta }: acp.PromptRequest, signal: AbortSignal): Promise<acp.PromptResponse> {
    const session = this.#session(sessionId);
    const request = promptRequest(prompt, _meta, this.#deps.restoreAskUserQuestion);
    const { stopReason, ...end } = await this.#untilStopped(signal, (stopped) => session.prompt(request, stopped));
    const meta = promptResponseMeta(end);
    return { stopReason, ...(meta && { _meta: meta }) };
  }

  /** A request that is cancelled is a person's cancel; a connection that ends is whatever ended it. */
  async #untilStopped(signal: AbortSignal, run: (stopped: AbortSignal) => Promise<PromptEnd>): Promise<PromptEnd> {
    const stop = new AbortController();
    const abort = () =>
      stop.abort(new TurnStopped(signal.reason instanceof HangUpError ? this.#deps.stopKind() : 'cancel'));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await run(stop.signal);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async #setMode(sessionId: string, modeId: string): Promise<Record<string, never>> {
    const session = this.#session(sessionId);
    if (!isMode(modeId)) throw RequestError.invalidParams([{ path: '/modeId', message: `is no mode: ${modeId}` }]);
    session.mode = modeId;
    await this.#announce(session);
    return {};
  }

  async #setConfigOption({
    sessionId,
    configId,
    value,
  }: acp.SetSessionConfigOptionRequest): Promise<acp.SetSessionConfigOptionResponse> {
    const session = this.#session(sessionId);
    if (configId !== MODE_OPTION) {
      throw RequestError.invalidParams([{ path: '/configId', message: `is no config option: ${configId}` }]);
    }
    if (!isMode(value)) throw RequestError.invalidParams([{ path: '/value', message: 'is none of its values' }]);
    session.mode = value;
    await this.#announce(session);
    return { configOptions: configOptions(value) };
  }

  /** Goes out before whatever is sent later; a client that is gone meanwhile needs it no more. */
  #announceCommands(sessionId: string): void {
    const update = availableCommandsUpdate();
    this.#deps.connection.notify(methods.sessionUpdate, { sessionId, update }).catch(() => {});
  }

  async #announce({ id, mode }: Session): Promise<void> {
    const { connection } = this.#deps;
    await connection.notify(methods.sessionUpdate, {
      sessionId: id,
      update: { sessionUpdate: 'current_mode_update', currentModeId: mode },
    });
    await connection.notify(methods.sessionUpdate, {
      sessionId: id,
      update: { sessionUpdate: 'config_option_update', configOptions: configOptions(mode) },
    });
  }

  #session(sessionId: string): Session {
    const session = this.#deps.sessions.find(sessionId);
    if (session === undefined) throw RequestError.sessionNotFound(sessionId);
    return session;
  }
}

/** What a prompt asks for. Only a prompt that starts nothing of its own needs content. */
export function promptRequest(blocks: readonly acp.ContentBlock[], meta: unknown, switchedOn: boolean): PromptRequest {
  const { restore, continueLastTurn, invocation } = readPromptMeta(meta);
  const tracked = invocation ? { invocation } : {};
  if (restore && switchedOn) return { kind: 'restore', ...tracked };
  if (continueLastTurn) return { kind: 'continue', ...tracked };
  const parts = promptParts(blocks);
  if (parts.length === 0) {
    throw RequestError.invalidParams([{ path: '/prompt', message: 'has no content; send at least one content block' }]);
  }
  return { kind: 'prompt', parts, ...tracked };
}

/** Runs what may not find the session; the protocol wants the id as the client wrote it. */
async function named<T>(sessionId: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SessionFault && error.kind === 'unknown_session')
      throw RequestError.sessionNotFound(sessionId);
    throw error;
  }
}

/** Resolves when the response of a request that has succeeded so far is on the wire, or will never be. */
function responseDelivered({ signal }: Connection, afterResponse: AfterResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', done, { once: true });
    afterResponse(done);
  });
}

function absolute(folder: string, path = '/cwd'): string {
  if (isAbsolute(folder)) return folder;
  throw RequestError.invalidParams([{ path, message: 'must be an absolute path' }]);
}

/** What a client gives a session to work with; what it leaves out is none. */
function setupOf(given: {
  readonly additionalDirectories?: readonly string[];
  readonly mcpServers?: readonly acp.McpServer[];
}): ToolSetup {
  const { additionalDirectories = [], mcpServers = [] } = given;
  const roots = additionalDirectories.map((root, index) => absolute(root, `/additionalDirectories/${index}`));
  return { roots, mcpServers };
}

/** What a client is told of a session's settings. */
const shape = ({ mode }: Session) => ({ modes: modeState(mode), configOptions: configOptions(mode) });
