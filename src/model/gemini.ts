import type {
  Candidate,
  FinishReason,
  GenerateContentConfig,
  GenerateContentResponse,
  GoogleGenAI,
  Part,
} from '@google/genai';
import { ProviderFault } from '../session/faults.ts';
import type { Model, ModelEvent, ModelFinish, ModelRequest, UsageMetadata } from '../session/ports.ts';
import { untilAbort } from '../until-abort.ts';
import { geminiFault, Refusal } from './gemini-faults.ts';
import { withoutProviderData } from './provider-data.ts';
import { readEventData } from './sse.ts';

export interface GeminiOptions {
  readonly authType: 'gemini' | 'vertex-ai';
  /** The model's name, as Google spells it. */
  readonly name: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Gemini, by its own API or by Vertex AI. The SDK is loaded and the client made on the first request. */
export function createGeminiModel(options: GeminiOptions): Model {
  let client: Promise<GoogleGenAI> | undefined;
  const access = readAccess(options);
  return {
    name: options.name,
    authType: options.authType,
    ...(/gemini/.test(options.name) && { contextWindow: 1_048_576 }),
    async *stream(request: ModelRequest): AsyncIterable<readonly ModelEvent[]> {
      const reply = new Reply();
      const opened: Opened = { body: undefined };
      // The SDK never takes its listener off the signal that it is given, so it gets one for this request alone.
      const attempt = new AbortController();
      const onAbort = () => attempt.abort(request.signal.reason);
      request.signal.addEventListener('abort', onAbort, { once: true });
      try {
        request.signal.throwIfAborted();
        client ??= createClient(access);
        const opening = client.then((made) => open(made, options.name, request, attempt.signal, opened));
        // Fetching a token for Vertex AI, for one, knows nothing of the signal.
        await untilAbort(opening, attempt.signal);
        if (opened.body === undefined) throw new ProviderFault('broken_stream', 'The provider sent no reply.');
        for await (const events of readEventData(opened.body)) {
          request.signal.throwIfAborted();
          const { heard, fault } = takeAll(reply, events);
          if (heard.length > 0) yield heard;
          if (fault !== undefined) throw fault;
        }
        request.signal.throwIfAborted();
        yield [...reply.end()];
      } catch (error) {
        request.signal.throwIfAborted();
        throw geminiFault(error, { ...access, started: opened.body !== undefined });
      } finally {
        request.signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

/** What a read brought, and the fault behind it: what came before a fault was said. */
function takeAll(reply: Reply, events: readonly string[]): { heard: ModelEvent[]; fault?: unknown } {
  const heard: ModelEvent[] = [];
  try {
    for (const data of events) {
      for (const part of reply.take(parseChunk(data))) heard.push({ kind: 'part', part });
    }
    return { heard };
  } catch (fault) {
    return { heard, fault };
  }
}

/** What the SDK's `fetch` brought. */
interface Opened {
  body: ReadableStream<Uint8Array> | undefined;
}

/** How the provider is reached, and which variable a person has to look at when it refuses. */
interface Access {
  readonly vertexai: boolean;
  readonly apiKey?: string;
  readonly project?: string;
  readonly location?: string;
  readonly baseUrl?: string;
  readonly variable: string;
}

function readAccess({ authType, env }: GeminiOptions): Access {
  const vertexai = authType === 'vertex-ai';
  const baseUrl = env[vertexai ? 'GOOGLE_VERTEX_BASE_URL' : 'GOOGLE_GEMINI_BASE_URL'];
  const common = { vertexai, ...(baseUrl && { baseUrl }) };
  const project = env['GOOGLE_CLOUD_PROJECT'];
  if (vertexai && project) {
    const location = env['GOOGLE_CLOUD_LOCATION'] || 'global';
    return { ...common, project, location, variable: 'GOOGLE_CLOUD_PROJECT' };
  }
  const variable = !vertexai && env['GEMINI_API_KEY'] ? 'GEMINI_API_KEY' : 'GOOGLE_API_KEY';
  return { ...common, apiKey: env[variable] ?? '', variable };
}

async function createClient(access: Access): Promise<GoogleGenAI> {
  const { GoogleGenAI } = await import('./google-sdk.ts');
  const { variable: _, baseUrl, ...options } = access;
  return new GoogleGenAI({ ...options, ...(baseUrl && { httpOptions: { baseUrl } }) });
}

/**
 * Sends the request with the SDK, which knows the address, the credentials and the body's form, but keeps the response's
 * body: the SDK reads a stream at 35 to 80 µs an event (a `Response` object for each), and its errors lack the headers.
 */
async function open(
  client: GoogleGenAI,
  model: string,
  request: ModelRequest,
  signal: AbortSignal,
  opened: Opened,
): Promise<void> {
  const config: GenerateContentConfig = {
    abortSignal: signal,
    ...(request.systemInstruction !== '' && { systemInstruction: request.systemInstruction }),
    ...(request.tools.length > 0 && { tools: [{ functionDeclarations: [...request.tools] }] }),
    ...(thinks(model) && { thinkingConfig: { includeThoughts: true } }),
    automaticFunctionCalling: { disable: true },
    automaticContinuation: false,
    httpOptions: {
      // The SDK copies only the fields that it knows out of each part; what a provider put on its turn must go back whole.
      extraBody: { contents: withoutProviderData(request.contents) },
      // With a fetch of our own, silence of five minutes ends a stream as broken.
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        if (!response.ok) {
          throw new Refusal(response.status, await response.text(), response.headers.get('retry-after'));
        }
        opened.body = response.body ?? undefined;
        return new Response('');
      },
    },
  };
  const nothing = await client.models.generateContentStream({ model, contents: REPLACED_BY_EXTRA_BODY, config });
  for await (const _ of nothing);
}

const REPLACED_BY_EXTRA_BODY = [{ role: 'user', parts: [{ text: '-' }] }];

/** Older models and Gemma answer a thinking configuration with an error. */
function thinks(model: string): boolean {
  return !/(^|\/)(gemma|gemini-(1|2\.0|pro))/.test(model);
}

function parseChunk(data: string): Partial<GenerateContentResponse> {
  const chunk = JSON.parse(data);
  if (typeof chunk?.error?.code === 'number') throw new Refusal(chunk.error.code, data, null);
  return chunk;
}

const REFUSALS: ReadonlySet<string> = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
] satisfies `${FinishReason}`[]);

/** What of one streamed reply has come so far. */
class Reply {
  #parts = 0;
  #usage: UsageMetadata | undefined;
  #finish: string | undefined;
  #detail: string | undefined;
  #blocked = false;
  #responseId: string | undefined;

  /** The chunk's parts as they came, but for those that carry nothing. */
  take(chunk: Partial<GenerateContentResponse>): readonly Part[] {
    this.#usage = chunk.usageMetadata ?? this.#usage;
    this.#responseId = chunk.responseId ?? this.#responseId;
    this.#blocked ||= chunk.promptFeedback?.blockReason !== undefined;
    const candidate: Candidate | undefined = chunk.candidates?.[0];
    this.#finish = candidate?.finishReason ?? this.#finish;
    this.#detail = candidate?.finishMessage ?? this.#detail;
    const parts = candidate?.content?.parts?.filter((part) => !carriesNothing(part)) ?? [];
    this.#parts += parts.length;
    return parts;
  }

  /** Throws `ProviderFault` for a reply that is none. */
  *end(): Generator<ModelEvent> {
    const reason = this.#reason();
    if (this.#usage !== undefined) yield { kind: 'usage', usage: this.#usage };
    yield { kind: 'finish', reason, ...(this.#responseId !== undefined && { responseId: this.#responseId }) };
  }

  #reason(): ModelFinish {
    if (this.#blocked || REFUSALS.has(this.#finish ?? '')) return 'refusal';
    if (this.#finish === undefined) {
      throw new ProviderFault('broken_stream', 'The model stopped in the middle of its reply.');
    }
    if (this.#finish === 'MAX_TOKENS') return 'max_tokens';
    if (this.#finish !== 'STOP' && UNUSABLE.test(this.#finish)) {
      throw new ProviderFault('empty_reply', `The model's reply is unusable: ${this.#detail ?? this.#finish}`);
    }
    if (this.#parts === 0) {
      throw new ProviderFault('empty_reply', `The model replied with nothing (${this.#finish}).`);
    }
    return 'stop';
  }
}

const UNUSABLE = /^(MALFORMED_|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS)/;

function carriesNothing(part: Part): boolean {
  if (part.text === undefined) return Object.keys(part).length === 0;
  return part.text === '' && Object.keys(part).every((key) => key === 'text' || key === 'thought');
}
