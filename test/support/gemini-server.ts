import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as the provider got it. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
  readonly body: any;
}

/** How the server answers one request. */
export type GeminiAnswer =
  | {
      /** Each becomes one server-sent event. */
      readonly chunks: readonly unknown[];
      /** Verbatim text after the chunks, for events that are cut or malformed. */
      readonly tail?: string;
      /** After all of that: `end` (default), `hang` for ever, or `reset` the connection. */
      readonly after?: 'end' | 'hang' | 'reset';
      /** Everything in one write (default), or one write a chunk. */
      readonly separately?: boolean;
    }
  | { readonly status: number; readonly body: unknown; readonly headers?: Record<string, string> };

export interface GeminiServer {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Resolves when the peer has closed the connection of a request answered with `after: 'hang'`. */
  readonly hungUp: Promise<void>;
  close(): Promise<void>;
}

/** Plays Gemini's streaming endpoint on loopback; the n-th request gets the n-th answer, the last one again and again. */
export async function startGeminiServer(...answers: readonly GeminiAnswer[]): Promise<GeminiServer> {
  const requests: SeenRequest[] = [];
  let onHungUp = () => {};
  const hungUp = new Promise<void>((resolve) => {
    onHungUp = resolve;
  });
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push({ url: request.url ?? '', headers: request.headers, body: JSON.parse(body) });
    if (answer === undefined) throw new Error('a server without answers was asked');
    await respond(response, answer, onHungUp);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    hungUp,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function respond(response: ServerResponse, answer: GeminiAnswer, hungUp: () => void): Promise<void> {
  if ('status' in answer) {
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    return;
  }
  const events = answer.chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const writes = answer.separately ? events : [events.join('')];
  for (const text of [...writes, answer.tail ?? '']) {
    if (text !== '') await new Promise<void>((resolve) => response.write(text, () => resolve()));
  }
  if (answer.after === 'hang') response.on('close', hungUp);
  else if (answer.after === 'reset') response.socket?.resetAndDestroy();
  else response.end();
}

/** A chunk with these parts, and a finish reason where it is the last. */
export function chunk(parts: readonly object[], finishReason?: string): object {
  return {
    candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }), index: 0 }],
    responseId: 'response-1',
  };
}
