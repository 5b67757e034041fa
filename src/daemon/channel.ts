import { randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type * as acp from '@agentclientprotocol/sdk';
import { type Connection, createConnection } from '../acp/connection.ts';
import { HangUpError } from '../acp/errors.ts';
import * as methods from '../acp/methods.ts';
import type { AfterResponse } from '../acp/serving.ts';
import type { Log } from '../log.ts';
import { daemonInitializeMeta } from '../meta/daemon.ts';
import { readInitializeMeta } from '../meta/meta.ts';
import { keepPinging } from './liveness.ts';
import { ChildHost } from './process.ts';

/** What a child may ask of the daemon and tell it. */
export interface ChannelHandlers {
  update(params: acp.SessionNotification): void;
  permission(
    params: acp.RequestPermissionRequest,
    signal: AbortSignal,
    afterResponse: AfterResponse,
  ): Promise<acp.RequestPermissionResponse>;
  activeWork(report: methods.ActiveWorkReport): void;
  suggestion(params: methods.PromptSuggestion): void;
  hasQueuedPrompt(sessionId: string): boolean;
  /** The child is gone, or going; nothing of it will be heard any more. */
  gone(channel: Channel, reason: string): void;
}

export interface ChannelOptions {
  /** Absolute path of the child's script. */
  readonly script: string;
  /** What follows `--acp`. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly version: string;
  readonly initializeTimeoutMs: number;
  readonly onStderr: (line: string) => void;
  readonly pingIntervalMs?: number;
}

const ACTIVE_WORK_INTERVAL_MS = 15_000;
const PING_INTERVAL_MS = 15_000;
const PING_TIMEOUT_MS = 10_000;
const CLIENT_NAME = 'qwen-acp-serve';
/** Demanded by the reference's child of whatever starts it. */
const GUARD_VALUE = 'required-v1';

/** The child script: `QWEN_CLI_ENTRY` where it is an absolute path, else this program's own. */
export function childScript(env: NodeJS.ProcessEnv, own: string): string {
  const entry = env['QWEN_CLI_ENTRY'];
  return entry && isAbsolute(entry) ? entry : own;
}

/** A running child and the connection to it, its handshake done. */
export class Channel {
  readonly connection: Connection;
  /** The child reports what keeps its sessions busy. */
  readonly reportsActiveWork: boolean;
  readonly #host: ChildHost;
  readonly #log: Log;
  #stopPinging: () => void = () => {};

  /**
   * Rejects when the child does not start, does not answer in time or is gone, or `signal` aborts; nothing of it is left
   * then.
   */
  static async open(
    options: ChannelOptions,
    handlers: ChannelHandlers,
    log: Log,
    signal: AbortSignal,
  ): Promise<Channel> {
    signal.throwIfAborted();
    const capability = randomBytes(32).toString('base64url');
    const host = new ChildHost({
      script: options.script,
      args: ['--acp', ...options.args],
      cwd: options.cwd,
      env: childEnvironment(process.env, capability),
      onStderr: options.onStderr,
    });
    const connection = createConnection(host.output, host.input, log);
    serve(connection, handlers);
    connection.listen();
    try {
      const result = await connection.request(methods.initialize, initializeParams(options.version, capability), {
        deadlineMs: options.initializeTimeoutMs,
        signal,
      });
      return new Channel(host, connection, result, options, handlers, log);
    } catch (error) {
      await host.end(() => connection.hangUp('the handshake failed'));
      if (!(error instanceof HangUpError) || signal.aborted) throw error;
      throw new HangUpError(error.kind, `it did not start (${await host.exited})`, { cause: error });
    }
  }

  private constructor(
    host: ChildHost,
    connection: Connection,
    result: acp.InitializeResponse,
    options: ChannelOptions,
    handlers: ChannelHandlers,
    log: Log,
  ) {
    this.#host = host;
    this.#log = log;
    this.connection = connection;
    const { channelLiveness, activeWorkHeartbeat } = readInitializeMeta(result._meta);
    this.reportsActiveWork = activeWorkHeartbeat !== undefined;
    if (channelLiveness) this.#stopPinging = this.#keepPinging(options.pingIntervalMs ?? PING_INTERVAL_MS);
    const gone = (reason: string) => {
      this.#stopPinging();
      handlers.gone(this, reason);
    };
    connection.signal.addEventListener('abort', () => gone((connection.signal.reason as Error).message), {
      once: true,
    });
    // A child that closes its output but lives on must not stay behind.
    void connection.closed.then(() => host.end(() => {}));
    void host.exited.then((how) => log.info(`the agent process ended (${how})`));
    if (connection.signal.aborted) gone((connection.signal.reason as Error).message);
  }

  /** Lets what was sent arrive, ends the child's input and waits until the process is gone. */
  async end(): Promise<void> {
    this.#stopPinging();
    await this.#host.end(() => this.connection.end());
    await this.connection.closed;
  }

  #keepPinging(intervalMs: number): () => void {
    let heard = 0;
    this.#host.output.on('data', () => {
      heard += 1;
    });
    return keepPinging(
      {
        ping: async (nonce, deadlineMs) =>
          (await this.connection.request(methods.channelPing, { v: 1, nonce }, { deadlineMs })).nonce,
        heard: () => heard,
        dead: (cause) => {
          this.#log.warn('the agent process does not answer and is ended', cause);
          this.connection.hangUp('the agent process does not answer');
        },
      },
      { intervalMs, timeoutMs: PING_TIMEOUT_MS },
    );
  }
}

function serve(connection: Connection, handlers: ChannelHandlers): void {
  connection.onNotification(methods.sessionUpdate, (params) => handlers.update(params));
  connection.onNotification(methods.activeWork, (params) => handlers.activeWork(params));
  connection.onNotification(methods.promptSuggestion, (params) => handlers.suggestion(params));
  connection.onRequest(methods.requestPermission, (params, signal, after) =>
    handlers.permission(params, signal, after),
  );
  connection.onRequest(methods.drainMidTurnQueue, ({ sessionId }) => ({
    messages: [],
    items: [],
    hasQueuedPrompt: handlers.hasQueuedPrompt(sessionId),
  }));
}

function initializeParams(version: string, capability: string): acp.InitializeRequest {
  return {
    protocolVersion: methods.PROTOCOL_VERSION,
    _meta: daemonInitializeMeta(ACTIVE_WORK_INTERVAL_MS, capability),
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } },
    clientInfo: { name: CLIENT_NAME, version },
  };
}

/** What the reference's daemon sets for its child, and never the secret that guards this one. */
function childEnvironment(env: NodeJS.ProcessEnv, capability: string): NodeJS.ProcessEnv {
  const { QWEN_SERVER_TOKEN: _token, ...inherited } = env;
  return {
    ...inherited,
    QWEN_CODE_NO_RELAUNCH: 'true',
    QWEN_CODE_SERVE: '1',
    QWEN_RUNTIME_DIR: env['QWEN_RUNTIME_DIR'] || env['QWEN_HOME'] || join(env['HOME'] || homedir(), '.qwen'),
    QWEN_CODE_PRIVATE_EXTERNAL_TOOL_GUARD: GUARD_VALUE,
    QWEN_CODE_PRIVATE_ACP_CAPABILITY: capability,
  };
}
