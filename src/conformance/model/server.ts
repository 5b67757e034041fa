import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Unmet, within } from '../verdicts.ts';
import { type Json, parse } from '../wire.ts';
import { anthropicWhole, anthropicWriter, readAnthropic } from './anthropic.ts';
import type { ModelRequest } from './conversation.ts';
import { geminiWhole, geminiWriter, readGemini } from './gemini.ts';
import { openAiWhole, openAiWriter, readOpenAi } from './openai.ts';
import { replyTo, SAID, type Step } from './script.ts';

/** An agent that sends more in one request is broken. */
const MOST_BYTES = 64 * 1024 * 1024;

/** One provider on loopback that speaks OpenAI's, Gemini's and Anthropic's API and does what prompts tell it to. */
export class FakeModel {
  /** Every request for a reply, in order. */
  readonly requests: ModelRequest[] = [];
  readonly #server: Server;
  readonly #patience: number;
  readonly #watching = new Set<() => void>();
  readonly #held = new Set<() => void>();
  #calls = 0;

  private constructor(patience: number) {
    this.#patience = patience;
    this.#server = createServer((request, response) => {
      // A connection that the agent closes is its way to cancel.
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(patience: number): Promise<FakeModel> {
    const model = new FakeModel(patience);
    model.#server.listen(0, '127.0.0.1');
    await once(model.#server, 'listening');
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The variables by which agents find it. */
  get env(): Record<string, string> {
    return {
      OPENAI_BASE_URL: `${this.url}/v1`,
      OPENAI_API_KEY: 'kit',
      OPENAI_MODEL: 'kit-model',
      GOOGLE_GEMINI_BASE_URL: this.url,
      GEMINI_API_KEY: 'kit',
      GEMINI_MODEL: 'gemini-kit',
      ANTHROPIC_BASE_URL: this.url,
      ANTHROPIC_API_KEY: 'kit',
      ANTHROPIC_MODEL: 'kit-model',
    };
  }

  /** Requests whose last turn bears this cue: how often the model was given that prompt. */
  prompted(cue: string): ModelRequest[] {
    return this.requests.filter(({ last, tools }) => tools.length > 0 && last.texts.some((text) => text.includes(cue)));
  }

  /** Requests that tell the model what a tool gave, as the newest thing in them. */
  get told(): ModelRequest[] {
    return this.requests.filter(({ last }) => last.results.length > 0);
  }

  /** Resolves when so many requests have come. */
  async asked(count: number): Promise<ModelRequest> {
    const enough = new Promise<void>((resolve) => {
      const look = () => {
        if (this.requests.length < count) return;
        this.#watching.delete(look);
        resolve();
      };
      this.#watching.add(look);
      look();
    });
    await within(enough, this.#patience, `request ${count} to the model`);
    const request = this.requests[count - 1];
    if (request === undefined) throw new Unmet('the model was not asked');
    return request;
  }

  /** Lets every reply that waits go on. */
  release(): void {
    for (const go of this.#held) go();
    this.#held.clear();
  }

  async close(): Promise<void> {
    this.release();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', this.url).pathname;
    const body = await bodyOf(request);
    const nextId = () => {
      this.#calls += 1;
      return `call_kit_${this.#calls}`;
    };
    if (path.endsWith('/chat/completions')) {
      await this.#reply(readOpenAi(body), response, openAiWriter(nextId), openAiWhole);
    } else if (/:(stream)?generateContent$/i.test(path)) {
      await this.#reply(readGemini(body, /:stream/i.test(path)), response, geminiWriter(), geminiWhole);
    } else if (path.endsWith('/messages')) {
      await this.#reply(readAnthropic(body), response, anthropicWriter(nextId), anthropicWhole);
    } else answerAside(path, response);
  }

  async #reply(
    seen: ModelRequest,
    response: ServerResponse,
    writer: Writer,
    whole: (text: string) => object,
  ): Promise<void> {
    this.requests.push(seen);
    for (const look of [...this.#watching]) look();
    if (!seen.streams) return sendJson(response, whole(SAID.join('')));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(writer.open());
    for (const step of replyTo(seen)) {
      if (response.destroyed) return undefined;
      if ('pause' in step) await new Promise((resolve) => setTimeout(resolve, step.pause));
      else if ('wait' in step) await this.#hold(response);
      else response.write(writer.step(step));
    }
    response.end(writer.close());
  }

  async #hold(response: ServerResponse): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#held.add(resolve);
      response.once('close', resolve);
    });
  }
}

interface Writer {
  open(): string;
  step(step: Step): string;
  close(): string;
}

/** What agents ask a provider besides replies. */
function answerAside(path: string, response: ServerResponse): void {
  if (path.endsWith('/models')) sendJson(response, { object: 'list', data: [{ id: 'kit-model', object: 'model' }] });
  else if (/[:/]count_?tokens$/i.test(path)) sendJson(response, { totalTokens: 11, input_tokens: 11 });
  else {
    const error = { code: 404, message: 'The kit does not play this.', status: 'NOT_FOUND' };
    sendJson(response, { error }, 404);
  }
}

function sendJson(response: ServerResponse, value: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > MOST_BYTES) throw new RangeError('a request to the model is too long');
    pieces.push(piece);
  }
  return parse(Buffer.concat(pieces).toString('utf8'));
}
