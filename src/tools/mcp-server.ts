import type { McpServer } from '@agentclientprotocol/sdk';
import {
  type CallToolResult,
  Client,
  type Progress,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Tool,
} from '@modelcontextprotocol/client';
import type { Log } from '../log.ts';
import { ToolFault } from '../session/faults.ts';
import { untilAbort } from '../until-abort.ts';
import { STREAM_LOST } from './mcp-http.ts';
import { printable } from './mcp-names.ts';
import { linkTo, type ServerLink } from './mcp-transport.ts';

export interface ServerOptions {
  readonly cwd: string;
  readonly log: Log;
  /** Of this program, for the server. */
  readonly version: string;
  /** How long a server may take until it has named its tools, in ms. */
  readonly startTimeoutMs: number;
  /** How long a call may go on without a sign of life, and how long at all, in ms. */
  readonly callTimeoutMs: number;
  readonly callTotalMs: number;
}

export interface ServerCall {
  readonly tool: Tool;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  readonly heard: (progress: Progress) => void;
}

type State =
  | { readonly kind: 'starting'; readonly done: Promise<void> }
  | { readonly kind: 'up'; readonly client: Client; readonly link: ServerLink }
  | { readonly kind: 'down'; readonly reason: string }
  | { readonly kind: 'closed' };

/** New starts in a row without an answered call in between. */
const MAX_RESTARTS = 3;
/** The call is not repeated by us, as it may have done what it is for. */
const LOST = 'was lost during the call, which may or may not have been carried out';
const MAX_TOOLS = 256;
const MAX_REASON = 500;
/** Several changes of a server's tools within so many ms are one. */
const CHANGE_DEBOUNCE_MS = 50;

/** One MCP server of a session: started, asked, started again when it died, ended. */
export class ServerConnection {
  readonly name: string;
  readonly #server: McpServer;
  readonly #options: ServerOptions;
  readonly #closing = new AbortController();
  #state: State = { kind: 'down', reason: 'it was not started' };
  #tools: readonly Tool[] = [];
  #restarts = 0;
  /** Those that are being ended, so that `close` can wait for them. */
  readonly #ending = new Set<Promise<void>>();

  constructor(server: McpServer, options: ServerOptions) {
    this.name = server.name;
    this.#server = server;
    this.#options = options;
  }

  /** Those it named last, kept while it is down. A changed list is another array. */
  get tools(): readonly Tool[] {
    return this.#tools;
  }

  /** Why it cannot be asked at the moment. */
  get failure(): string | undefined {
    return this.#state.kind === 'down' ? this.#state.reason : undefined;
  }

  /** Settles when it has named its tools or failed, which is logged. Never rejects. */
  start(): Promise<void> {
    if (this.#state.kind === 'starting') return this.#state.done;
    // The state is set before anything of the start can end it.
    const done = Promise.resolve().then(() => this.#start());
    this.#state = { kind: 'starting', done };
    return done;
  }

  /** Throws `ToolFault` `mcp_tool_error` naming the server; on abort the signal's reason, after the server was told. */
  async call(call: ServerCall, isRepeated = false): Promise<CallToolResult> {
    const { tool, args, signal, heard } = call;
    const { client, link } = await this.#ready(signal);
    // What the answer must look like is the model's to judge, not ours.
    const { outputSchema: _, ...definition } = tool;
    try {
      const result = await client.callTool(
        { name: tool.name, arguments: { ...args } },
        {
          signal,
          onprogress: heard,
          timeout: this.#options.callTimeoutMs,
          resetTimeoutOnProgress: true,
          maxTotalTimeout: this.#options.callTotalMs,
          toolDefinition: definition,
        },
      );
      this.#restarts = 0;
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const fault = this.#callFault(error, client, link);
      // The protocol's word for an HTTP session that the server does not know any more: nothing was carried out.
      const isForgotten = error instanceof SdkHttpError && error.status === 404;
      if (isForgotten && !isRepeated) return this.call(call, true);
      throw fault;
    }
  }

  /** Never rejects; nothing of the server is left when it settles. */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = { kind: 'closed' };
    this.#closing.abort(new Error('the session was closed'));
    if (state.kind === 'starting') await state.done;
    if (state.kind === 'up') this.#end(state.client, state.link);
    await Promise.all(this.#ending);
  }

  async #start(): Promise<void> {
    const client = new Client(
      { name: 'qwen-acp', version: this.#options.version },
      {
        listChanged: {
          tools: { debounceMs: CHANGE_DEBOUNCE_MS, onChanged: (error, tools) => this.#change(error, tools) },
        },
      },
    );
    let link: ServerLink | undefined;
    try {
      link = linkTo(this.#server, this.#options.cwd, this.#options.log);
      this.#tools = this.#bounded(await this.#open(client, link));
      this.#closing.signal.throwIfAborted();
      this.#state = { kind: 'up', client, link };
    } catch (error) {
      if (link) this.#end(client, link);
      this.#fail('did not start', `${messageOf(error)}${said(link)}`);
    }
  }

  /** Answers its tools. Rejects at the deadline and when the session is closed. */
  async #open(client: Client, link: ServerLink): Promise<readonly Tool[]> {
    const timeout = this.#options.startTimeoutMs;
    const deadline = AbortSignal.timeout(timeout);
    const signal = AbortSignal.any([deadline, this.#closing.signal]);
    client.onclose = () => this.#lost(client, link, 'ended');
    client.onerror = (error) => this.#options.log.debug(`MCP server ${this.#label}`, error);
    const opening = async () => {
      await client.connect(link.transport, { timeout, signal });
      return (await client.listTools(undefined, { timeout, signal })).tools;
    };
    try {
      return await untilAbort(opening(), signal);
    } catch (error) {
      if (deadline.aborted) throw new Error(`no answer within ${timeout / 1000} s`);
      throw signal.aborted ? signal.reason : error;
    }
  }

  /** One that is up; a server that is down is started again. */
  async #ready(signal: AbortSignal): Promise<{ readonly client: Client; readonly link: ServerLink }> {
    signal.throwIfAborted();
    if (this.#state.kind === 'down') {
      if (this.#restarts >= MAX_RESTARTS) {
        throw this.#fault(
          `was started again ${MAX_RESTARTS} times in vain (${this.#state.reason}); it will not be again`,
        );
      }
      this.#restarts += 1;
      void this.start();
    }
    if (this.#state.kind === 'starting') await untilAbort(this.#state.done, signal);
    const state: State = this.#state;
    if (state.kind === 'up') return state;
    throw this.#fault(state.kind === 'down' ? `is not running: ${state.reason}` : 'was closed with its session');
  }

  #callFault(error: unknown, client: Client, link: ServerLink): ToolFault {
    const reason = `${messageOf(error)}${said(link)}`;
    const isUncertain = error instanceof ProtocolError && error.code === STREAM_LOST;
    if (isUncertain) return this.#fault(`${LOST}: ${reason}`, error);
    if (error instanceof ProtocolError) return this.#fault(`refused the call: ${messageOf(error)}`, error);
    if (error instanceof SdkError && !(error instanceof SdkHttpError)) {
      if (error.code === SdkErrorCode.RequestTimeout) return this.#fault(`did not answer in time: ${reason}`, error);
      if (error.code !== SdkErrorCode.ConnectionClosed && error.code !== SdkErrorCode.NotConnected) {
        return this.#fault(`gave an answer that cannot be read: ${reason}`, error);
      }
    }
    // A new connection is made for the next call.
    this.#lost(client, link, `was lost during a call (${messageOf(error)})`);
    return this.#fault(`${LOST}: ${reason}`, error);
  }

  #lost(client: Client, link: ServerLink, how: string): void {
    if (this.#state.kind !== 'up' || this.#state.client !== client) return;
    this.#fail(how, `it ${how}${said(link)}`);
    this.#end(client, link);
  }

  #fail(what: string, reason: string): void {
    if (this.#state.kind === 'closed') return;
    this.#state = { kind: 'down', reason };
    this.#options.log.warn(`MCP server ${this.#label} ${what}: ${reason}`);
  }

  #end(client: Client, link: ServerLink): void {
    const ended = link
      .end()
      .then(() => client.close())
      .catch(() => undefined)
      .finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  #change(error: Error | null, tools: readonly Tool[] | null): void {
    if (tools !== null) this.#tools = this.#bounded(tools);
    else if (error !== null) this.#options.log.warn(`MCP server ${this.#label} did not tell its changed tools`, error);
  }

  #bounded(tools: readonly Tool[]): readonly Tool[] {
    if (tools.length <= MAX_TOOLS) return tools;
    this.#options.log.warn(`MCP server ${this.#label} has ${tools.length} tools; the first ${MAX_TOOLS} are offered`);
    return tools.slice(0, MAX_TOOLS);
  }

  get #label(): string {
    return printable(this.name, 60);
  }

  #fault(what: string, cause?: unknown): ToolFault {
    this.#options.log.debug(`MCP server ${this.#label} ${what}`, cause);
    return new ToolFault('mcp_tool_error', `The MCP server ${this.#label} ${what}`);
  }
}

function said(link: ServerLink | undefined): string {
  const words = link?.lastWords() ?? '';
  return words === '' ? '' : `; it said: ${words}`;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error), MAX_REASON);
  // `fetch failed` says nothing; its cause does.
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return printable(`${error.message}${cause}`, MAX_REASON);
}
