import { LLMock } from '@copilotkit/aimock';
import type { Content } from '@google/genai';
import { afterEach, describe, expect, test } from 'vitest';
import { createGeminiModel } from '../../src/model/gemini.ts';
import { readEventData } from '../../src/model/sse.ts';
import type { Model, ModelRequest } from '../../src/session/ports.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';
import { chunk, type GeminiAnswer, type GeminiServer, startGeminiServer } from '../support/gemini-server.ts';

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function serve(...answers: readonly GeminiAnswer[]): Promise<{ server: GeminiServer; model: Model }> {
  const server = await startGeminiServer(...answers);
  cleanups.push(() => server.close());
  const env = { GEMINI_API_KEY: 'secret-key', GOOGLE_GEMINI_BASE_URL: server.url };
  return { server, model: createGeminiModel({ authType: 'gemini', name: 'gemini-fake', env }) };
}

const QUESTION: Content = { role: 'user', parts: [{ text: 'hello' }] };

describe('against aimock, an independent fake of the provider', () => {
  async function mock(): Promise<{ mock: LLMock; model: Model }> {
    const server = new LLMock({ port: 0, chunkSize: 4 });
    await server.start();
    cleanups.push(() => server.stop());
    const env = { GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: server.url };
    return { mock: server, model: createGeminiModel({ authType: 'gemini', name: 'gemini-2.5-flash', env }) };
  }

  test('[MD-1] text streams in pieces and ends with usage and a finish', async () => {
    const { mock: server, model } = await mock();
    server.onMessage('hello', { content: 'Good morning to you.' });
    const events = await collect(model, modelRequest('hello'));
    const texts = partsOf(events).map((part) => part.text);
    expect(texts.length).toBeGreaterThan(2);
    expect(texts.join('')).toBe('Good morning to you.');
    expect(events.at(-1)).toMatchObject({ kind: 'finish', reason: 'stop' });
    expect(events.at(-2)).toMatchObject({ kind: 'usage' });
  });

  test('[MD-1] thoughts come as thought parts before the text', async () => {
    const { mock: server, model } = await mock();
    server.onMessage('hello', { content: 'Yes.', reasoning: 'Is it?' });
    const parts = partsOf(await collect(model, modelRequest('hello')));
    const thought = parts.filter((part) => part.thought).map((part) => part.text);
    expect(thought.join('')).toBe('Is it?');
    expect(parts[0]?.thought).toBe(true);
    expect(parts.at(-1)?.thought).not.toBe(true);
  });

  test('[MD-1] parallel tool calls come as function calls, and their responses go back', async () => {
    const { mock: server, model } = await mock();
    server.onMessage('hello', {
      toolCalls: [
        { name: 'ask_user_question', arguments: '{"questions":[]}' },
        { name: 'read_file', arguments: '{"path":"a"}' },
      ],
    });
    const parts = partsOf(await collect(model, modelRequest('hello')));
    expect(parts.map((part) => [part.functionCall?.name, part.functionCall?.args])).toEqual([
      ['ask_user_question', { questions: [] }],
      ['read_file', { path: 'a' }],
    ]);
  });

  test('[MD-4] an error of the provider is a fault of its kind', async () => {
    const { mock: server, model } = await mock();
    server.onMessage('hello', { error: { message: 'down for repairs' }, status: 503 });
    expect(await rejection(collect(model, modelRequest('hello')))).toMatchObject({ kind: 'server', status: 503 });
  });
});

describe('the request', () => {
  const sent = async (request: Partial<ModelRequest>, name = 'gemini-fake') => {
    const server = await startGeminiServer({ chunks: [chunk([{ text: 'ok' }], 'STOP')] });
    cleanups.push(() => server.close());
    const env = { GEMINI_API_KEY: 'secret-key', GOOGLE_GEMINI_BASE_URL: server.url };
    await collect(createGeminiModel({ authType: 'gemini', name, env }), { ...modelRequest('hello'), ...request });
    return server.requests[0]!;
  };

  test('[MD-1] goes to GOOGLE_GEMINI_BASE_URL with the key in its header', async () => {
    const { url, headers, body } = await sent({});
    expect(url).toBe('/v1beta/models/gemini-fake:streamGenerateContent?alt=sse');
    expect(headers['x-goog-api-key']).toBe('secret-key');
    expect(body.systemInstruction.parts).toEqual([{ text: 'be brief' }]);
    expect(body.generationConfig.thinkingConfig).toEqual({ includeThoughts: true });
  });

  test('[MD-1] carries the tools with their JSON schemas', async () => {
    const tool = { name: 'read_file', description: 'reads', parametersJsonSchema: { type: 'object', properties: {} } };
    const { body } = await sent({ tools: [tool] });
    expect(body.tools).toEqual([{ functionDeclarations: [tool] }]);
  });

  test('[MD-1] leaves out an empty system instruction and an empty list of tools', async () => {
    const { body } = await sent({ systemInstruction: '', tools: [] });
    expect(Object.keys(body).sort()).toEqual(['contents', 'generationConfig']);
  });

  test('[MD-1] asks no model for thoughts that cannot think', async () => {
    const { body } = await sent({}, 'gemini-2.0-flash');
    expect(body.generationConfig?.thinkingConfig).toBeUndefined();
  });

  test('[MD-5] carries every content verbatim, unknown fields included', async () => {
    const contents: Content[] = [
      QUESTION,
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true, thoughtSignature: 'c2ln' },
          { text: '', thoughtSignature: 'ZW1wdHk=' },
          { functionCall: { id: 'own-1', name: 'f', args: {}, later: { x: 1 } }, newField: [1, null] } as never,
        ],
      },
      { role: 'user', parts: [{ functionResponse: { id: 'own-1', name: 'f', response: { output: 'yes' } } }] },
    ];
    expect((await sent({ contents })).body.contents).toEqual(contents);
  });

  test('[MD-1] goes to Vertex AI with an API key', async () => {
    const server = await startGeminiServer({ chunks: [chunk([{ text: 'ok' }], 'STOP')] });
    cleanups.push(() => server.close());
    const env = { GOOGLE_API_KEY: 'vertex-key', GOOGLE_VERTEX_BASE_URL: server.url };
    const model = createGeminiModel({ authType: 'vertex-ai', name: 'gemini-fake', env });
    expect(partsOf(await collect(model, modelRequest('hello')))).toEqual([{ text: 'ok' }]);
    expect(server.requests[0]?.url).toMatch(/publishers\/google\/models\/gemini-fake:streamGenerateContent\?alt=sse$/);
    expect(server.requests[0]?.headers['x-goog-api-key']).toBe('vertex-key');
  });
});

describe('the reply', () => {
  test('[MD-5] parts come out as the provider sent them', async () => {
    const parts = [
      { text: 'thinking', thought: true },
      { text: '', thoughtSignature: 'c2ln' },
      { functionCall: { id: 'x', name: 'f', args: { a: 1 } }, thoughtSignature: 'czI=', unknown: { deep: [true] } },
      { functionCall: { name: 'no_id', args: {} } },
      { brandNew: 1 },
    ];
    const { model } = await serve({ chunks: [chunk(parts.slice(0, 2)), chunk(parts.slice(2), 'STOP')] });
    expect(partsOf(await collect(model, modelRequest('hello')))).toEqual(parts);
  });

  test('[MD-1] the last usage and the response id come with the end', async () => {
    const { model } = await serve({
      chunks: [
        { ...chunk([{ text: 'a' }]), usageMetadata: { totalTokenCount: 5 } },
        { ...chunk([{ text: '' }], 'STOP'), usageMetadata: { totalTokenCount: 9, thoughtsTokenCount: 2 } },
      ],
    });
    expect(await collect(model, modelRequest('hello'))).toEqual([
      { kind: 'part', part: { text: 'a' } },
      { kind: 'usage', usage: { totalTokenCount: 9, thoughtsTokenCount: 2 } },
      { kind: 'finish', reason: 'stop', responseId: 'response-1' },
    ]);
  });

  test('[MD-1] events that arrive byte by byte, with LF and multi-byte text, are read whole', async () => {
    const text = `data: ${JSON.stringify(chunk([{ text: 'é🙂' }], 'STOP'))}\n\n`;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of new TextEncoder().encode(text)) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
    const events: string[] = [];
    for await (const batch of readEventData(body)) events.push(...batch);
    expect(events.map((event) => JSON.parse(event))).toEqual([chunk([{ text: 'é🙂' }], 'STOP')]);
  });

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'max_tokens'],
    ['SAFETY', 'refusal'],
    ['RECITATION', 'refusal'],
    ['PROHIBITED_CONTENT', 'refusal'],
    ['SOMETHING_NEW', 'stop'],
  ])('[MD-4] %s finishes as %s', async (finishReason, reason) => {
    const { model } = await serve({ chunks: [chunk([{ text: 'a' }], finishReason)] });
    expect((await collect(model, modelRequest('hello'))).at(-1)).toMatchObject({ kind: 'finish', reason });
  });

  test('[MD-4] a blocked prompt is a refusal', async () => {
    const { model } = await serve({ chunks: [{ promptFeedback: { blockReason: 'SAFETY' } }] });
    expect(await collect(model, modelRequest('hello'))).toEqual([{ kind: 'finish', reason: 'refusal' }]);
  });
});

const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7.5s' };
const refusal = (code: number, message: string, details?: unknown[]) => ({ error: { code, message, details } });

describe('faults', () => {
  test.each<[string, GeminiAnswer, object]>([
    ['401', { status: 401, body: refusal(401, 'no') }, { kind: 'auth', status: 401 }],
    [
      '403',
      { status: 403, body: refusal(403, 'no') },
      { kind: 'auth', message: expect.stringMatching(/GEMINI_API_KEY/) },
    ],
    [
      'a key that Google does not know (400)',
      { status: 400, body: refusal(400, 'API key not valid.', [{ reason: 'API_KEY_INVALID' }]) },
      { kind: 'auth', status: 400 },
    ],
    [
      '429 with a Retry-After header',
      { status: 429, body: refusal(429, 'slow down'), headers: { 'retry-after': '3' } },
      { kind: 'rate_limit', status: 429, retryAfterMs: 3000 },
    ],
    [
      '429 with RetryInfo',
      { status: 429, body: refusal(429, 'slow down', [retryInfo]) },
      { kind: 'rate_limit', retryAfterMs: 7500 },
    ],
    ['429 without either', { status: 429, body: refusal(429, 'no') }, { kind: 'rate_limit', retryAfterMs: undefined }],
    [
      '500 with a page of HTML',
      { status: 500, body: '<html>', headers: { 'content-type': 'text/html' } },
      { kind: 'server' },
    ],
    ['500 with JSON that is none', { status: 502, body: '{"err', headers: {} }, { kind: 'server' }],
    [
      'a context that is too long',
      { status: 400, body: refusal(400, 'The input token count (2000000) exceeds the maximum number of tokens') },
      { kind: 'context_overflow', status: 400 },
    ],
    ['another 400', { status: 400, body: refusal(400, 'no such field') }, { kind: 'bad_request', status: 400 }],
    ['404', { status: 404, body: refusal(404, 'no such model') }, { kind: 'bad_request', status: 404 }],
    [
      'an error in the stream',
      { chunks: [chunk([{ text: 'a' }]), refusal(503, 'overloaded')] },
      { kind: 'server', status: 503, message: expect.stringMatching(/overloaded/) },
    ],
    ['a stream without a finish', { chunks: [chunk([{ text: 'a' }])] }, { kind: 'broken_stream' }],
    ['a stream without anything', { chunks: [] }, { kind: 'broken_stream' }],
    [
      'a stream cut inside an event',
      { chunks: [chunk([{ text: 'a' }])], tail: 'data: {"candidates":[{"cont' },
      { kind: 'broken_stream' },
    ],
    ['an event that is no JSON', { chunks: [], tail: 'data: oops\n\n' }, { kind: 'broken_stream' }],
    ['a connection that is reset', { chunks: [chunk([{ text: 'a' }])], after: 'reset' }, { kind: 'broken_stream' }],
    ['a reply without parts', { chunks: [chunk([], 'STOP')] }, { kind: 'empty_reply' }],
    ['a reply of one empty text', { chunks: [chunk([{ text: '' }], 'STOP')] }, { kind: 'empty_reply' }],
    ['a malformed function call', { chunks: [chunk([], 'MALFORMED_FUNCTION_CALL')] }, { kind: 'empty_reply' }],
  ])('[MD-4] %s', async (_, answer, expected) => {
    const { model } = await serve(answer);
    const error = await rejection(collect(model, modelRequest('hello')));
    expect(error).toMatchObject({ name: 'ProviderFault', ...expected });
  });

  test('[MD-4] a server that nobody listens at is a server fault that names what happened', async () => {
    const { server, model } = await serve();
    await server.close();
    cleanups.length = 0;
    expect(await rejection(collect(model, modelRequest('hello')))).toMatchObject({
      kind: 'server',
      message: expect.stringMatching(/ECONNREFUSED/),
    });
  });

  test('[MD-4] the key never appears in a message, and a long one is cut', async () => {
    const { model } = await serve({ status: 400, body: refusal(400, `bad key secret-key ${'x'.repeat(9999)}`) });
    const error = (await rejection(collect(model, modelRequest('hello')))) as Error;
    expect(error.message).not.toContain('secret-key');
    expect(error.message.length).toBeLessThan(700);
  });
});

describe('a conversation with others', () => {
  test('[MD-5] is sent without their thoughts and their fields, which Gemini refuses', async () => {
    const { server, model } = await serve({ chunks: [chunk([{ text: 'a' }], 'STOP')] });
    const own = { functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: 's' };
    const data = { providerData: { provider: 'openai', fields: { x: 1 } } };
    const contents = [
      QUESTION,
      {
        role: 'model',
        parts: [{ text: 'hm', thought: true, thoughtSignature: 't', ...data }, data, { ...own, ...data }],
      },
      { role: 'model', parts: [data] },
      { role: 'model', parts: [own] },
    ] as Content[];
    await collect(model, modelRequest(contents));
    const sent = server.requests[0]?.body.contents;
    expect(sent).toEqual([QUESTION, { role: 'model', parts: [own] }, { role: 'model', parts: [own] }]);
  });
});

describe('abort', () => {
  const reason = new Error('cancelled by the person');

  test('[MD-4, ACP-7] ends a stream that hangs, with the reason, and closes the connection', async () => {
    const { server, model } = await serve({ chunks: [chunk([{ text: 'a' }])], after: 'hang' });
    const controller = new AbortController();
    const stream = model.stream(modelRequest('hello', controller.signal))[Symbol.asyncIterator]();
    await stream.next();
    const next = stream.next();
    controller.abort(reason);
    expect(await rejection(next)).toBe(reason);
    await server.hungUp;
  });

  test('[MD-4] before the request sends nothing', async () => {
    const { server, model } = await serve({ chunks: [chunk([{ text: 'a' }], 'STOP')] });
    expect(await rejection(collect(model, modelRequest('hello', AbortSignal.abort(reason))))).toBe(reason);
    expect(server.requests).toEqual([]);
  });

  test('[MD-4] between two parts that arrived together ends at once', async () => {
    const { model } = await serve({ chunks: [chunk([{ text: 'a' }]), chunk([{ text: 'b' }], 'STOP')] });
    const controller = new AbortController();
    const stream = model.stream(modelRequest('hello', controller.signal))[Symbol.asyncIterator]();
    await stream.next();
    controller.abort(reason);
    expect(await rejection(stream.next())).toBe(reason);
  });

  test('[MD-4] a reader that stops early closes the connection', async () => {
    const { server, model } = await serve({ chunks: [chunk([{ text: 'a' }])], after: 'hang' });
    for await (const _ of model.stream(modelRequest('hello'))) break;
    await server.hungUp;
  });
});
