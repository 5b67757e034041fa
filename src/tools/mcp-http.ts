import {
  type JSONRPCMessage,
  type RequestId,
  SSEClientTransport,
  SseError,
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from '@modelcontextprotocol/client';
import { boundedFetch } from './mcp-fetch.ts';

type SendOptions = Parameters<StreamableHTTPClientTransport['send']>[1];

/** The JSON-RPC error that stands for an answer which cannot come any more; given by us, not by a server. */
export const STREAM_LOST = -32099;

/**
 * The official transport, but a request whose stream ended without its answer fails. The official client waits on, until the
 * request's time is over.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #unanswered = new Set<RequestId>();

  constructor(url: URL, options: StreamableHTTPClientTransportOptions) {
    super(url, { ...options, fetch: boundedFetch });
    // The client puts its own handler around this one.
    this.onmessage = (message) => {
      if (!('method' in message) && message.id !== undefined) this.#unanswered.delete(message.id);
    };
  }

  override async send(message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    if (Array.isArray(message) || !('method' in message) || !('id' in message)) return super.send(message, options);
    const { id } = message;
    this.#unanswered.add(id);
    try {
      await super.send(message, { ...options, onRequestStreamEnd: () => this.#streamEnded(id) });
    } catch (error) {
      this.#unanswered.delete(id);
      throw error;
    }
  }

  #streamEnded(id: RequestId): void {
    if (!this.#unanswered.delete(id)) return;
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: STREAM_LOST, message: 'the connection was cut' } });
  }
}

/** The older transport, ended when its stream of events breaks: a stream that it opened anew would be of another session. */
export function sseTransport(url: URL, requestInit: RequestInit): SSEClientTransport {
  const transport = new SSEClientTransport(url, { requestInit, fetch: boundedFetch });
  transport.onerror = (error) => {
    if (error instanceof SseError) void transport.close().catch(() => undefined);
  };
  return transport;
}
