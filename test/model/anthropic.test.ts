import { LLMock } from '@copilotkit/aimock';
import type { Content } from '@google/genai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAnthropicModel } from '../../src/model/anthropic.ts';
import { anthropicMessages, loopHasThoughts } from '../../src/model/anthropic-messages.ts';
import { claudeTraits } from '../../src/model/claude.ts';
import { ModelTurn } from '../../src/session/model-turn.ts';
import { collect, modelRequest, partsOf } from '../support/collect.ts';
import { anthropicStream, serve } from '../support/wire-server.ts';

const GOOD = anthropicStream([{ type: 'text', text: 'fine' }]);
const turn = (...parts: object[]): Content => ({ role: 'model', parts });
const said = (...parts: object[]): Content => ({ role: 'user', parts });
const call = (id: string | undefined, rest: object = {}) => ({
  functionCall: { ...(id && { id }), name: 'f', args: { x: 1 } },
  ...rest,
});
const result = (id: string | undefined, response: object = { output: 'ok' }) => ({
  functionResponse: { ...(id && { id }), name: 'f', response },
});

describe('against aimock, an independent fake of the provider', () => {
  async function mock() {
    const server = new LLMock({ port: 0, chunkSize: 4 });
    await server.start();
    onTestFinished(() => server.stop());
    const endpoint = { apiKey: 'k', baseUrl: server.url, variable: 'ANTHROPIC_API_KEY', idleMs: 0 };
    return { server, model: createAnthropicModel({ authType: 'anthropic', name: 'claude-sonnet-4.5', ...endpoint }) };
  }

  test('[MD-2] thoughts and text stream in pieces and end with usage and a finish', async () => {
    const { server, model } = await mock();
    server.onMessage('hello', { content: 'Good morning to you.', reasoning: 'Is it?' });
    const events = await collect(model, modelRequest('hello'));
    const parts = partsOf(events);
    expect(parts.length).toBeGreaterThan(3);
    const of = (thought: boolean) =>
      parts.filter((part) => (part.thought ?? false) === thought).map(({ text }) => text);
    expect(of(false).join('')).toBe('Good morning to you.');
    expect(of(true).join('')).toBe('Is it?');
    expect(events.at(-1)).toMatchObject({ kind: 'finish', reason: 'stop' });
    expect(events.at(-2)).toMatchObject({ kind: 'usage' });
  });

  test('[MD-2] parallel calls come whole, and their results go back', async () => {
    const { server, model } = await mock();
    const toolCalls = ['/a', '/b'].map((path) => ({ name: 'read_file', arguments: JSON.stringify({ path }) }));
    server.on({ userMessage: 'read both', hasToolResult: false }, { toolCalls });
    const parts = partsOf(await collect(model, modelRequest('read both')));
    expect(parts.map(({ functionCall }) => functionCall?.args)).toEqual([{ path: '/a' }, { path: '/b' }]);
    const ids = parts.map(({ functionCall }) => functionCall?.id ?? '');
    server.onToolResult(ids[1] ?? '', { content: 'Both read.' });
    const contents = [said({ text: 'read both' }), turn(...parts), said(...ids.map((id) => result(id)))];
    const answer = partsOf(await collect(model, modelRequest(contents)));
    expect(answer.map(({ text }) => text).join('')).toBe('Both read.');
  });
});

describe('the request', () => {
  test('[MD-2] has the address, the key, the marks of what may be cached, and asks for thoughts', async () => {
    const { server, model } = await serve('anthropic', { name: 'claude-sonnet-4.5' }, GOOD);
    const tools = [{ name: 'f', description: 'does', parametersJsonSchema: { type: 'object', properties: {} } }];
    await collect(model, { ...modelRequest('hello'), tools });
    const { url, headers, body } = server.requests[0] as NonNullable<(typeof server.requests)[0]>;
    const cache_control = { type: 'ephemeral' };
    expect(url).toBe('/v1/messages');
    // A gateway's favourite header, too.
    expect(headers).toMatchObject({ 'x-api-key': 'secret-key', authorization: 'Bearer secret-key' });
    expect(headers).toHaveProperty('anthropic-version');
    expect(body).toEqual({
      model: 'claude-sonnet-4.5',
      max_tokens: 32_000,
      system: [{ type: 'text', text: 'be brief', cache_control }],
      tools: [
        { type: 'custom', name: 'f', description: 'does', input_schema: tools[0]?.parametersJsonSchema, cache_control },
      ],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hello', cache_control }] }],
      thinking: { type: 'enabled', budget_tokens: 16_000 },
      stream: true,
    });
  });

  test('[MD-2] an address may end in the version, a token is sent as one', async () => {
    const { server, model } = await serve('anthropic', { apiKey: undefined as never, authToken: 'token' }, GOOD);
    const { server: versioned, model: other } = await serve('anthropic', {}, GOOD);
    await collect(model, modelRequest('hello'));
    expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer token' });
    expect(server.requests[0]?.headers).not.toHaveProperty('x-api-key');
    const endpoint = { authType: 'anthropic', name: 'm', apiKey: 'k', variable: 'K', idleMs: 0 } as const;
    await collect(createAnthropicModel({ ...endpoint, baseUrl: `${versioned.url}/v1/` }), modelRequest('hello'));
    expect(versioned.requests[0]?.url).toBe('/v1/messages');
    expect(other.name).toBe('m');
  });

  test('[MD-2, MD-4] what a server refuses by name is left out, then and later', async () => {
    const refuse = (message: string) => ({
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error', message } },
    });
    const { server, model } = await serve(
      'anthropic',
      { name: 'claude-sonnet-4.5' },
      refuse('cache_control: extra inputs are not permitted'),
      refuse('messages.1.content.0: Invalid `signature` in `thinking` block'),
      GOOD,
    );
    const contents = [
      said({ text: 'q' }),
      turn({ text: 'hm', thought: true, thoughtSignature: 's' }, { text: 'a' }),
      said({ text: 'r' }),
    ];
    await collect(model, modelRequest(contents));
    await collect(model, modelRequest(contents));
    const bodies = server.requests.map(({ body }) => body);
    expect(bodies.map((body) => 'cache_control' in body.system[0])).toEqual([true, false, false, false]);
    expect(bodies.map((body) => 'thinking' in body)).toEqual([true, true, false, false]);
    expect(bodies.map(({ messages }) => messages[1].content.length)).toEqual([2, 2, 1, 1]);
  });

  test.each([
    ['claude-3-haiku-20240307', undefined, 4096],
    ['claude-3-5-sonnet-20241022', undefined, 8192],
    ['claude-3-7-sonnet-20250219', 'enabled', 32_000],
    ['claude-sonnet-4-20250514', 'enabled', 32_000],
    ['anthropic/claude-opus-4.5', 'enabled', 32_000],
    ['claude-opus-4-6', 'adaptive', 32_000],
    ['claude-sonnet-5', 'adaptive', 32_000],
    ['claude-something-new', 'adaptive', 32_000],
    ['deepseek-chat', undefined, 8192],
  ])('[MD-2] %s thinks: %s', (name, thinking, maxTokens) => {
    const traits = claudeTraits(name);
    expect([traits.thinking?.type, traits.maxTokens]).toEqual([thinking, maxTokens]);
  });
});

describe('the finish', () => {
  test.each([
    ['end_turn', 'stop'],
    ['tool_use', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'max_tokens'],
    ['refusal', 'refusal'],
  ])('[MD-2, MD-4] %s is %s', async (reason, finish) => {
    const { model } = await serve('anthropic', {}, anthropicStream([{ type: 'text', text: 'x' }], reason));
    expect((await collect(model, modelRequest('hello'))).at(-1)).toMatchObject({ kind: 'finish', reason: finish });
  });
});

describe('what the provider put on its turn', () => {
  test('[MD-5] thoughts with their signatures, hidden ones, ids and unknown fields go back as they came', async () => {
    const blocks = [
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
      { type: 'redacted_thinking', data: 'hidden' },
      { type: 'thinking', thinking: '', signature: 'only a signature' },
      { type: 'text', text: 'Look.' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 }, caller: { type: 'direct' } },
    ];
    const { server, model } = await serve(
      'anthropic',
      { name: 'claude-sonnet-4.5' },
      anthropicStream(blocks, 'tool_use'),
      GOOD,
    );
    const stored = new ModelTurn({ isUsed: () => false, fresh: () => 'fresh' });
    for (const part of partsOf(await collect(model, modelRequest('hello')))) stored.add(part);
    // As JSON, since a restart lies between.
    const before: Content = JSON.parse(JSON.stringify(stored.content()));
    expect(before.parts?.[0]).toMatchObject({ text: 'hm', thought: true, thoughtSignature: 'sig==' });
    await collect(model, modelRequest([said({ text: 'hello' }), before, said(result('toolu_1'))]));
    const { messages, thinking } = server.requests[1]?.body ?? {};
    expect(messages[1]).toEqual({ role: 'assistant', content: blocks });
    expect(messages[2].content).toEqual([
      { type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok', cache_control: { type: 'ephemeral' } },
    ]);
    expect(thinking).toBeDefined();
  });

  test('[MD-5] a thought as the reference stores it goes back too', () => {
    const { messages } = anthropicMessages(
      [said({ text: 'q' }), turn({ text: 'hm', thought: true, thoughtSignature: 's' }, { text: 'a' })],
      {
        thoughts: 'signed',
        media: true,
      },
    );
    expect(messages[1]?.content[0]).toEqual({ type: 'thinking', thinking: 'hm', signature: 's' });
  });
});

describe('a conversation with others', () => {
  const messages = (contents: Content[], thoughts: 'signed' | 'all' = 'signed') =>
    anthropicMessages(contents, { thoughts, media: true }).messages;

  test('[MD-5] ids that it does not take, none, and one that was used again become ids that it takes', () => {
    const found = messages([
      said({ text: 'q' }),
      turn(call('has space'), call(undefined), call('a')),
      said(result('has space'), result(undefined), result('a')),
      turn(call('a'), call('y'.repeat(65))),
      said(result('a'), result('y'.repeat(65))),
    ]);
    const calls = found.flatMap(({ content }) =>
      content.flatMap((block) => (block.type === 'tool_use' ? [block['id'] as string] : [])),
    );
    const results = found.flatMap(({ content }) =>
      content.flatMap((block) => (block.type === 'tool_result' ? [block['tool_use_id']] : [])),
    );
    expect(results).toEqual(calls);
    expect(new Set(calls).size).toBe(5);
    for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(calls[2]).toBe('a');
  });

  test('[MD-5] thoughts of others, and unsigned ones, stay behind; a server that signs nothing gets them', () => {
    const foreign = { text: 'hm', thought: true, providerData: { provider: 'openai', thoughtField: 'reasoning' } };
    const unsigned = { text: 'so', thought: true };
    const contents = [said({ text: 'q' }), turn(foreign, unsigned, { text: 'a' })];
    expect(messages(contents)[1]?.content).toEqual([{ type: 'text', text: 'a' }]);
    expect(messages(contents, 'all')[1]?.content).toEqual([
      { type: 'thinking', thinking: 'so', signature: '' },
      { type: 'text', text: 'a' },
    ]);
  });

  test('[MD-2] roles alternate from the person on, results stand first, blank text is left out', () => {
    expect(
      messages([
        turn({ text: 'early' }),
        turn({ text: ' \n' }, call('a')),
        said({ text: 'also' }, result('a', { error: 'broke' })),
        said({ text: '' }, { text: 'more' }),
        turn({ text: 'hm', thought: true }),
      ]),
    ).toEqual([
      { role: 'user', content: [{ type: 'text', text: expect.any(String) }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'early' },
          { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'broke', is_error: true },
          { type: 'text', text: 'also' },
          { type: 'text', text: 'more' },
        ],
      },
    ]);
  });

  test('[MD-2] a tool loop that another model began is gone on with without thoughts', () => {
    const loop = (...first: object[]) => messages([said({ text: 'q' }), turn(...first, call('a')), said(result('a'))]);
    expect(loopHasThoughts(loop())).toBe(false);
    expect(loopHasThoughts(loop({ text: 'hm', thought: true, thoughtSignature: 's' }))).toBe(true);
    expect(
      loopHasThoughts([
        ...loop(),
        { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
        ...messages([said({ text: 'next' })]),
      ]),
    ).toBe(true);
  });

  test.each([
    ['image/png', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }],
    ['application/pdf', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' } }],
    ['text/csv', { type: 'text', text: 'hi' }],
    ['image/tiff', { type: 'text', text: '[An attachment of type image/tiff, which you cannot be shown.]' }],
    ['audio/wav', { type: 'text', text: '[An attachment of type audio/wav, which you cannot be shown.]' }],
  ])('[MD-2] %s', (mimeType, block) => {
    expect(messages([said({ inlineData: { mimeType, data: 'aGk=' } })])[0]?.content).toEqual([block]);
  });
});
