import type { OpenAI } from 'openai';
import type { Model, ModelRequest } from '../session/ports.ts';
import type { Endpoint } from './endpoint.ts';
import { exchange, type Wire } from './exchange.ts';
import { httpFault } from './http-faults.ts';
import { dialectOf, openAiMessages, openAiTools } from './openai-messages.ts';
import { OpenAiReply } from './openai-stream.ts';
import { Optional } from './optional.ts';

/** Every endpoint that speaks OpenAI's chat completions. The SDK is loaded and the client made on the first request. */
export function createOpenAiModel(endpoint: Endpoint): Model {
  const wire = createWire(endpoint);
  return {
    name: endpoint.name,
    authType: 'openai',
    ...(endpoint.contextWindow !== undefined && { contextWindow: endpoint.contextWindow }),
    stream: (request) => exchange(wire, request),
  };
}

type Feature = 'usage' | 'thoughts' | 'media';
type Body = OpenAI.ChatCompletionCreateParamsStreaming;

function createWire(endpoint: Endpoint): Wire {
  let client: Promise<OpenAI> | undefined;
  const optional = new Optional<Feature>({
    usage: /stream_options|include_usage/i,
    thoughts: /reasoning/i,
    media: /image|audio|vision|multi-?modal|modalit|\bfile\b|content part|expected (`text`|a string)/i,
  });
  return {
    idleMs: endpoint.idleMs,
    reply: () => new OpenAiReply(),
    fault: (error, started) =>
      httpFault(error, {
        variable: endpoint.variable,
        model: endpoint.name,
        modelVariable: 'OPENAI_MODEL',
        addressVariable: 'OPENAI_BASE_URL',
        started,
        ...(endpoint.apiKey && { apiKey: endpoint.apiKey }),
      }),
    async open(request, signal) {
      client ??= createClient(endpoint);
      const { chat } = await client;
      return await optional.send(
        (without) => buildBody(endpoint, request, without),
        // The response as it is: our reader takes a fraction of the time of the SDK's, which awaits every event.
        (body) => chat.completions.create(body, { signal }).asResponse(),
      );
    },
  };
}

async function createClient({ apiKey, baseUrl, headers }: Endpoint): Promise<OpenAI> {
  const { OpenAI } = await import('./openai-sdk.ts');
  return new OpenAI({
    apiKey: apiKey ?? 'none',
    // What the SDK would read from the environment by itself is settled by the endpoint.
    baseURL: baseUrl ?? 'https://api.openai.com/v1',
    maxRetries: 0,
    // Silence is watched for here, in the reply too.
    timeout: NEVER_MS,
    defaultHeaders: { ...(apiKey === undefined && { authorization: null }), ...headers },
  });
}

/** The longest that a timer can wait. */
const NEVER_MS = 2 ** 31 - 1;

function buildBody(endpoint: Endpoint, request: ModelRequest, without: ReadonlySet<Feature>) {
  const own = dialectOf(endpoint.baseUrl);
  const dialect = {
    ...own,
    thoughts: own.thoughts && !without.has('thoughts'),
    media: own.media && !without.has('media'),
  };
  const { messages, hasThoughts, hasMedia } = openAiMessages(request, dialect);
  const has = new Set<Feature>();
  if (!without.has('usage')) has.add('usage');
  if (hasThoughts) has.add('thoughts');
  if (hasMedia) has.add('media');
  const tools = openAiTools(request);
  const body = {
    model: endpoint.name,
    messages,
    ...(tools.length > 0 && { tools }),
    ...endpoint.body,
    stream: true,
    ...(has.has('usage') && { stream_options: { include_usage: true } }),
  };
  // The messages may have fields that OpenAI's own do not.
  return { body: body as unknown as Body, has };
}
