import type { Anthropic } from '@anthropic-ai/sdk';
import type { Model, ModelRequest } from '../session/ports.ts';
import {
  type AnthropicDialect,
  anthropicMessages,
  anthropicTools,
  loopHasThoughts,
  withCacheMark,
} from './anthropic-messages.ts';
import { AnthropicReply } from './anthropic-stream.ts';
import { claudeTraits } from './claude.ts';
import { type Endpoint, hostOf } from './endpoint.ts';
import { exchange, type Wire } from './exchange.ts';
import { httpFault } from './http-faults.ts';
import { Optional } from './optional.ts';

/** Every endpoint that speaks Anthropic's Messages API. The SDK is loaded and the client made on the first request. */
export function createAnthropicModel(endpoint: Endpoint): Model {
  const wire = createWire(endpoint);
  const contextWindow = endpoint.contextWindow ?? claudeTraits(endpoint.name).contextWindow;
  return {
    name: endpoint.name,
    authType: 'anthropic',
    ...(contextWindow !== undefined && { contextWindow }),
    stream: (request) => exchange(wire, request),
  };
}

type Feature = 'cache' | 'thoughts' | 'media';
type Body = Anthropic.MessageCreateParamsStreaming;

function createWire(endpoint: Endpoint): Wire {
  let client: Promise<Anthropic> | undefined;
  const optional = new Optional<Feature>({
    cache: /cache_control/i,
    thoughts: /thinking|signature/i,
    media: /image|document|vision|multi-?modal|modalit/i,
  });
  const secret = endpoint.apiKey ?? endpoint.authToken;
  return {
    idleMs: endpoint.idleMs,
    reply: () => new AnthropicReply(),
    fault: (error, started) =>
      httpFault(error, {
        variable: endpoint.variable,
        model: endpoint.name,
        modelVariable: 'ANTHROPIC_MODEL',
        addressVariable: 'ANTHROPIC_BASE_URL',
        started,
        ...(secret && { apiKey: secret }),
      }),
    async open(request, signal) {
      client ??= createClient(endpoint);
      const { messages } = await client;
      return await optional.send(
        (without) => buildBody(endpoint, request, without),
        // The response as it is: our reader takes a fraction of the time of the SDK's, which awaits every event.
        (body) => messages.create(body, { signal }).asResponse(),
      );
    },
  };
}

async function createClient({ apiKey, authToken, baseUrl, headers }: Endpoint): Promise<Anthropic> {
  const { Anthropic } = await import('./anthropic-sdk.ts');
  const own = baseUrl === undefined || hostOf(baseUrl) === 'api.anthropic.com';
  // Gateways want the key as a bearer token as often as not. The SDK sends one or the other.
  const both = !own && apiKey !== undefined && { 'x-api-key': apiKey, authorization: `Bearer ${apiKey}` };
  return new Anthropic({
    ...(apiKey === undefined ? { authToken: authToken ?? '' } : { apiKey }),
    // What the SDK would read from the environment by itself is settled by the endpoint. The version is part of the SDK's path.
    baseURL: (baseUrl ?? 'https://api.anthropic.com').replace(/\/v1\/?$/, ''),
    maxRetries: 0,
    // Silence is watched for here, in the reply too.
    timeout: NEVER_MS,
    defaultHeaders: { ...both, ...headers },
  });
}

/** The longest that a timer can wait. */
const NEVER_MS = 2 ** 31 - 1;

function buildBody(endpoint: Endpoint, request: ModelRequest, without: ReadonlySet<Feature>) {
  const traits = claudeTraits(endpoint.name);
  const dialect: AnthropicDialect = {
    thoughts: without.has('thoughts') ? 'none' : traits.thoughts,
    media: !without.has('media'),
  };
  const { messages, hasThoughts, hasMedia } = anthropicMessages(request.contents, dialect);
  const thinks = !without.has('thoughts') && (traits.thinking?.type !== 'enabled' || loopHasThoughts(messages));
  const thinking = thinks ? traits.thinking : undefined;
  const has = new Set<Feature>();
  if (!without.has('cache')) has.add('cache');
  if (hasThoughts || thinking) has.add('thoughts');
  if (hasMedia) has.add('media');
  const marked = <T extends { readonly type: string }>(blocks: readonly T[]) =>
    has.has('cache') ? withCacheMark(blocks) : blocks;
  const tools = anthropicTools(request);
  const last = messages.at(-1);
  const body = {
    model: endpoint.name,
    max_tokens: traits.maxTokens,
    ...(request.systemInstruction !== '' && { system: marked([{ type: 'text', text: request.systemInstruction }]) }),
    ...(tools.length > 0 && { tools: marked(tools) }),
    messages: last ? [...messages.slice(0, -1), { ...last, content: marked(last.content) }] : messages,
    ...(thinking && { thinking }),
    ...endpoint.body,
    stream: true,
  };
  // The blocks were stored as they came and go back so.
  return { body: body as unknown as Body, has };
}
