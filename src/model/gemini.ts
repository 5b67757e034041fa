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
import { geminiFault } from './gemini-faults.ts';

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
    async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
      client ??= createClient(access);
      const reply = new Reply();
      const seen: { retryAfter: string | null } = { retryAfter: null };
      // The SDK never takes its listener off the signal, and leaves a half-read response open: both end with this one.
      const attempt = new AbortController();
      const onAbort = () => attempt.abort(request.signal.reason);
      request.signal.addEventListener('abort', onAbort, { once: true });
      try {
        request.signal.throwIfAborted();
        const chunks = await unlessAborted(
          open(await client, options.name, request, attempt.signal, seen),
          attempt.signal,
        );
        for await (const chunk of chunks) {
          request.signal.throwIfAborted();
          for (const part of reply.take(chunk)) yield { kind: 'part', part };
        }
        request.signal.throwIfAborted();
        yield* reply.end();
      } catch (error) {
        request.signal.throwIfAborted();
        throw geminiFault(error, { ...access, started: reply.started, retryAfter: seen.retryAfter });
      } finally {
        request.signal.removeEventListener('abort', onAbort);
        attempt.abort();
      }
    },
  };
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
  const { GoogleGenAI } = await import('@google/genai');
  const { variable: _, baseUrl, ...options } = access;
  return new GoogleGenAI({ ...options, ...(baseUrl && { httpOptions: { baseUrl } }) });
}

async function open(
  client: GoogleGenAI,
  model: string,
  request: ModelRequest,
  signal: AbortSignal,
  seen: { retryAfter: string | null },
): Promise<AsyncIterable<GenerateContentResponse>> {
  const config: GenerateContentConfig = {
    abortSignal: signal,
    systemInstruction: request.systemInstruction,
    ...(request.tools.length > 0 && { tools: [{ functionDeclarations: [...request.tools] }] }),
    ...(thinks(model) && { thinkingConfig: { includeThoughts: true } }),
    automaticFunctionCalling: { disable: true },
    automaticContinuation: false,
    httpOptions: {
      // The SDK copies only the fields that it knows out of each part; what a provider put on its turn must go back whole.
      extraBody: { contents: request.contents },
      // The SDK's errors carry no headers. (With a fetch of our own, silence of five minutes ends a stream as broken.)
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        seen.retryAfter = response.headers.get('retry-after');
        return response;
      },
    },
  };
  return client.models.generateContentStream({ model, contents: REPLACED_BY_EXTRA_BODY, config });
}

const REPLACED_BY_EXTRA_BODY = [{ role: 'user', parts: [{ text: '-' }] }];

/** Older models and Gemma answer a thinking configuration with an error. */
function thinks(model: string): boolean {
  return !/(^|\/)(gemma|gemini-(1|2\.0|pro))/.test(model);
}

/** Fetching a token for Vertex AI, for one, knows nothing of the signal; an abort must not wait for it. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return await Promise.race([promise, aborted]);
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
  #started = false;

  get started(): boolean {
    return this.#started;
  }

  /** The chunk's parts as they came, but for those that carry nothing. */
  take(chunk: GenerateContentResponse): readonly Part[] {
    this.#started = true;
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
