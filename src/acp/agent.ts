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
} from '../meta/meta.ts';
import { AUTH_METHODS } from '../model/auth-methods.ts';
import type { SelectableModelSource } from '../model/choose.ts';
import type { StopKind } from '../session/batch.ts';
import type { ToolSetup } from '../session/ports.ts';
import type { Session } from '../session/session.ts';
import type { Loaded, LoadedReplay, Sessions } from '../session/sessions.ts';
import type { PromptEnd } from '../session/tracked-turn.ts';
import { TurnStopped } from '../session/turn-host.ts';
import { type ClientIdentity, identityOf } from './ask.ts';
import { availableCommandsUpdate } from './commands.ts';
import type { Connection } from './connection.ts';
import { HangUpError, RequestError } from './errors.ts';
import { sessionPage } from './listing.ts';
import * as methods from './methods.ts';
import { configOptions, isMode, MODE_OPTION, settingsOf } from './modes.ts';
import { bulkReplay } from './pages.ts';
import { promptRequest } from './prompt-request.ts';
import { serveReferenceMethods } from './reference-methods.ts';
import { streamReplay } from './replays.ts';
import { askAgainAfter } from './self-restore.ts';
import type { AfterResponse } from './serving.ts';
import { absolute, closeLive, liveSession, named } from './session-refs.ts';

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

/** The agent's side of ACP; each method hands over to the session it names. */
export class Agent {
  readonly #deps: AgentDeps;
  readonly #client: ClientIdentity;

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
    connection.onRequest(methods.closeSession, async ({ sessionId }) => {
      await closeLive(sessions, sessionId);
      return {};
    });
    connection.onRequest(methods.deleteSession, ({ sessionId }) => this.#delete(sessionId));
    connection.onRequest(methods.prompt, (params, signal) => this.#prompt(params, signal));
    connection.onNotification(methods.cancel, ({ sessionId }) => void sessions.find(sessionId)?.stop('cancel'));
    connection.onRequest(methods.setMode, ({ sessionId, modeId }) => this.#setMode(sessionId, modeId));
    connection.onRequest(methods.setConfigOption, (params) => this.#setConfigOption(params));
    serveReferenceMethods(this.#deps);
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
    return { sessionId: session.id, ...settingsOf(session) };
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
    return { ...settingsOf(session), _meta: meta };
  }

  async #delete(sessionId: string): Promise<Record<string, never>> {
    await this.#deps.sessions.delete(sessionId);
    return {};
  }

  async #prompt({ sessionId, prompt, _meta }: acp.PromptRequest, signal: AbortSignal): Promise<acp.PromptResponse> {
    const session = liveSession(this.#deps.sessions, sessionId);
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
    const session = liveSession(this.#deps.sessions, sessionId);
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
    const session = liveSession(this.#deps.sessions, sessionId);
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

/** What a client gives a session to work with; what it leaves out is none. */
function setupOf(given: {
  readonly additionalDirectories?: readonly string[];
  readonly mcpServers?: readonly acp.McpServer[];
}): ToolSetup {
  const { additionalDirectories = [], mcpServers = [] } = given;
  const roots = additionalDirectories.map((root, index) => absolute(root, `/additionalDirectories/${index}`));
  return { roots, mcpServers };
}
