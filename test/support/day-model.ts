import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LLMock } from '@copilotkit/aimock';

// biome-ignore lint/suspicious/noExplicitAny: requests of three providers
type Json = any;

export type Wire = 'openai' | 'anthropic' | 'gemini';
export const WIRES: readonly Wire[] = ['openai', 'anthropic', 'gemini'];

/** A call that the model makes; `{{answer}}` in its arguments becomes what the person answered last. */
export interface DayCall {
  readonly name: string;
  readonly args: object;
}

/** A message of a request, whatever the provider calls its parts. */
export interface Message {
  readonly role: 'user' | 'model';
  readonly calls: readonly { readonly id: string; readonly name: string }[];
  readonly results: readonly { readonly id: string; readonly text: string }[];
  readonly text: string;
}

/** Tokens of each provider's context, as the program under test knows them. */
const WINDOW = { openai: 200_000, anthropic: 200_000, gemini: 1_048_576 } as const;
const MODEL = { openai: 'day-model', anthropic: 'claude-sonnet-4.5', gemini: 'gemini-day' } as const;
const SUMMARY = 'THE MORNING IN SHORT';

/**
 * aimock behind a tap on loopback. It plays `rounds` for the prompt that begins with their name, one after each batch of
 * results, then repeats what the tools answered.
 */
export class DayModel {
  readonly wire: Wire;
  readonly requests: Json[] = [];
  /** The ids of all calls that it made, in order. */
  readonly issued: string[] = [];
  /** What each request was said to have taken of the context, in tokens; undefined for one that wanted a summary. */
  readonly used: (number | undefined)[] = [];
  /** True: the next answer says that the context is nearly full. */
  full = false;
  url = '';
  readonly #rounds: ReadonlyMap<string, readonly (readonly DayCall[])[]>;
  readonly #mock = new LLMock({ port: 0, chunkSize: 100 });
  readonly #tap = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      if (request.method === 'POST') this.requests.push(JSON.parse(body));
      const { host: _, 'content-length': __, ...headers } = request.headers;
      const target = `${this.#mock.url}${request.url}`;
      const forward = httpRequest(target, { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      forward.on('error', () => response.destroy());
      forward.end(body);
    });
  });

  private constructor(wire: Wire, rounds: ReadonlyMap<string, readonly (readonly DayCall[])[]>) {
    this.wire = wire;
    this.#rounds = rounds;
  }

  static async start(wire: Wire, rounds: ReadonlyMap<string, readonly (readonly DayCall[])[]>): Promise<DayModel> {
    const model = new DayModel(wire, rounds);
    model.#mock.on({}, (request) => model.#reply(request.messages) as never);
    await model.#mock.start();
    model.#tap.listen(0, '127.0.0.1');
    await once(model.#tap, 'listening');
    model.url = `http://127.0.0.1:${(model.#tap.address() as AddressInfo).port}`;
    return model;
  }

  async close(): Promise<void> {
    this.#tap.closeAllConnections();
    this.#tap.close();
    await this.#mock.stop();
  }

  /** What a program needs in its environment to use it. */
  get env(): Record<string, string> {
    const name = MODEL[this.wire];
    return {
      openai: { OPENAI_API_KEY: 'k', OPENAI_MODEL: name, OPENAI_BASE_URL: `${this.url}/v1` },
      anthropic: { ANTHROPIC_API_KEY: 'k', ANTHROPIC_MODEL: name, ANTHROPIC_BASE_URL: this.url },
      gemini: { GEMINI_API_KEY: 'k', GEMINI_MODEL: name, GOOGLE_GEMINI_BASE_URL: this.url },
    }[this.wire];
  }

  /** The settings that choose it, and name its context where a program cannot know that. */
  get settings(): object {
    const { wire } = this;
    const selected = { security: { auth: { selectedType: wire } } };
    if (wire !== 'openai') return selected;
    const generationConfig = { contextWindowSize: WINDOW.openai };
    const model = { id: MODEL.openai, name: 'Day', baseUrl: `${this.url}/v1`, envKey: 'OPENAI_API_KEY' };
    return { ...selected, modelProviders: { openai: [{ ...model, generationConfig }] } };
  }

  get window(): number {
    return WINDOW[this.wire];
  }

  /** The conversation of each request so far. */
  get conversations(): readonly (readonly Message[])[] {
    return this.requests.map((body) => MESSAGES[this.wire](body));
  }

  #reply(messages: readonly Json[]): object {
    const prompt_tokens = this.full ? Math.floor(0.9 * this.window) : 1_000 + this.requests.length;
    this.full = false;
    const usage = { usage: { prompt_tokens, completion_tokens: 7 } };
    const asked = messages.findLastIndex(({ role, content }) => role === 'user' && /^T\d\d /.test(textOf(content)));
    const last = messages.at(-1);
    const summary = last?.role === 'user' && !/^T\d\d /.test(textOf(last.content));
    this.used.push(summary ? undefined : prompt_tokens);
    if (summary) return { content: SUMMARY, ...usage };
    const [name = ''] = /^T\d\d/.exec(textOf(messages[asked]?.content)) ?? [];
    const since = messages.slice(asked + 1);
    const round = since.filter(({ role }) => role === 'assistant').length;
    const results = since.filter(({ role }) => role === 'tool').map(({ content }) => plain(textOf(content)));
    const calls = this.#rounds.get(name)?.[round];
    if (calls === undefined) return { content: `${name} DONE ${results.join(' | ').slice(0, 2_000)}`, ...usage };
    const answer = /\*\*\w+\*\*: (\w+)/.exec(results.join('\n'))?.[1] ?? 'nothing';
    const toolCalls = calls.map(({ name: tool, args }, at) => {
      const id = `call_${name}_${round}_${at}`;
      this.issued.push(id);
      return { id, name: tool, arguments: JSON.stringify(args).replaceAll('{{answer}}', answer) };
    });
    return { toolCalls, reasoning: `I have to call ${calls.length}.`, ...usage };
  }
}

/** What a tool answered; Gemini wraps it in an object. */
function plain(content: string): string {
  if (!content.startsWith('{"output":') && !content.startsWith('{"error":')) return content;
  const { output, error } = JSON.parse(content);
  return output ?? error;
}

const textOf = (content: Json): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }: Json) => text ?? '').join('');

/** Every message as the provider groups them; the results of one batch are one message. */
const MESSAGES: Readonly<Record<Wire, (body: Json) => Message[]>> = {
  openai({ messages }) {
    const read: { -readonly [K in keyof Message]: Message[K] }[] = [];
    let toolsBefore = false;
    for (const { role, content, tool_calls = [], tool_call_id } of messages) {
      if (role === 'system') continue;
      const results = role === 'tool' ? [{ id: tool_call_id, text: textOf(content) }] : [];
      const before = read.at(-1);
      if (role === 'tool' && toolsBefore && before) before.results = [...before.results, ...results];
      else {
        const calls = tool_calls.map((call: Json) => ({ id: call.id, name: call.function.name }));
        const text = role === 'tool' ? '' : textOf(content);
        read.push({ role: role === 'assistant' ? 'model' : 'user', calls, results, text });
      }
      toolsBefore = role === 'tool';
    }
    return read;
  },
  anthropic: ({ messages }) =>
    messages.map(({ role, content }: Json) => {
      const blocks: Json[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
      const of = (type: string) => blocks.filter((block) => block.type === type);
      return {
        role: role === 'assistant' ? 'model' : 'user',
        calls: of('tool_use').map(({ id, name }) => ({ id, name })),
        results: of('tool_result').map((block) => ({ id: block.tool_use_id, text: textOf(block.content) })),
        text: of('text')
          .map(({ text }) => text)
          .join(''),
      };
    }),
  gemini: ({ contents }) =>
    contents.map(({ role, parts }: Json) => ({
      role,
      calls: parts.flatMap(({ functionCall: call }: Json) => (call ? [{ id: call.id, name: call.name }] : [])),
      results: parts.flatMap(({ functionResponse: result }: Json) =>
        result ? [{ id: result.id, text: plain(JSON.stringify(result.response)) }] : [],
      ),
      text: parts.flatMap(({ text, thought }: Json) => (text && !thought ? [text] : [])).join(''),
    })),
};
