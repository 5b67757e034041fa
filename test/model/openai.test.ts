import { LLMock } from '@copilotkit/aimock';
import type { Content } from '@google/genai';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createOpenAiModel } from '../../src/model/openai.ts';
import { dialectOf, openAiMessages } from '../../src/model/openai-messages.ts';
import { ModelTurn } from '../../src/session/model-turn.ts';
import type { ModelEvent } from '../../src/session/ports.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';
import { delta, openAiStream, serve } from '../support/wire-server.ts';

const GOOD = openAiStream(delta({ content: 'fine' }, 'stop'));

describe('against aimock, an independent fake of the provider', () => {
  async function mock() {
    const server = new LLMock({ port: 0, chunkSize: 4 });
    await server.start();
    onTestFinished(() => server.stop());
    const endpoint = { apiKey: 'k', baseUrl: `${server.url}/v1`, variable: 'OPENAI_API_KEY', idleMs: 0 };
    return { server, model: createOpenAiModel({ authType: 'openai', name: 'gpt-test', ...endpoint }) };
  }

  test('[MD-2] text streams in pieces, with thoughts before it, usage and a finish', async () => {
    const { server, model } = await mock();
    server.onMessage('hello', { content: 'Good morning to you.', reasoning: 'Is it?' });
    const events = await collect(model, modelRequest('hello'));
    const parts = partsOf(events);
    expect(parts.length).toBeGreaterThan(3);
    const said = (thought: boolean) =>
      parts.filter((part) => (part.thought ?? false) === thought).map(({ text }) => text);
    expect(said(false).join('')).toBe('Good morning to you.');
    expect(said(true).join('')).toBe('Is it?');
    expect(events.at(-1)).toMatchObject({ kind: 'finish', reason: 'stop' });
  });

  test('[MD-2] parallel calls come whole, and their results go back', async () => {
    const { server, model } = await mock();
    const toolCalls = ['/a', '/b'].map((path) => ({ name: 'read_file', arguments: JSON.stringify({ path }) }));
    server.on({ userMessage: 'read both', hasToolResult: false }, { toolCalls });
    const parts = partsOf(await collect(model, modelRequest('read both')));
    expect(parts.map(({ functionCall }) => functionCall?.args)).toEqual([{ path: '/a' }, { path: '/b' }]);
    const ids = parts.map(({ functionCall }) => functionCall?.id ?? '');
    server.onToolResult(ids[1] ?? '', { content: 'Both read.' });
    const results = ids.map((id) => ({
      functionResponse: { id, name: 'read_file', response: { output: `of ${id}` } },
    }));
    const contents = [
      { role: 'user', parts: [{ text: 'read both' }] },
      { role: 'model', parts },
      { role: 'user', parts: results },
    ];
    const answer = partsOf(await collect(model, modelRequest(contents)));
    expect(answer.map(({ text }) => text).join('')).toBe('Both read.');
  });
});

describe('the request', () => {
  test('[MD-2] has the address, the key, the model, the tools and the parameters of the endpoint', async () => {
    const { server, model } = await serve('openai', { body: { temperature: 0.5 }, headers: { 'x-mine': 'yes' } }, GOOD);
    const tools = [
      {
        name: 'f',
        description: 'does',
        parametersJsonSchema: { type: 'object', properties: { x: { type: 'string' } } },
      },
    ];
    await collect(model, { ...modelRequest('hello'), tools });
    const { url, headers, body } = server.requests[0] as NonNullable<(typeof server.requests)[0]>;
    expect(url).toBe('/chat/completions');
    expect(headers).toMatchObject({ authorization: 'Bearer secret-key', 'x-mine': 'yes' });
    expect(body).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hello' },
      ],
      tools: [
        { type: 'function', function: { name: 'f', description: 'does', parameters: tools[0]?.parametersJsonSchema } },
      ],
      temperature: 0.5,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test('[MD-2] an endpoint without a key is sent none', async () => {
    const { server, model } = await serve('openai', { apiKey: undefined as never }, GOOD);
    await collect(model, modelRequest('hello'));
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  test('[MD-2, MD-4] what a server refuses by name is left out, then and later', async () => {
    const refuse = (message: string) => ({ status: 400, body: { error: { message } } });
    const { server, model } = await serve(
      'openai',
      {},
      refuse("Unrecognized request argument: 'stream_options'"),
      refuse('messages.1: extra field reasoning_content'),
      refuse('this model does not support image input'),
      GOOD,
    );
    const contents: Content[] = [
      { role: 'user', parts: [{ text: 'see' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      { role: 'model', parts: [{ text: 'hm', thought: true }, { text: 'seen' }] },
      { role: 'user', parts: [{ text: 'and' }] },
    ];
    await collect(model, modelRequest(contents));
    await collect(model, modelRequest(contents));
    const bodies = server.requests.map(({ body }) => body);
    expect(bodies).toHaveLength(5);
    expect(bodies.map((body) => 'stream_options' in body)).toEqual([true, false, false, false, false]);
    expect(bodies.map((body) => 'reasoning_content' in body.messages[2])).toEqual([true, true, false, false, false]);
    expect(bodies.map((body) => Array.isArray(body.messages[1].content))).toEqual([true, true, true, false, false]);
    expect(bodies[4].messages[1].content).toMatch(/^see\n\n\[An attachment of type image\/png/);
  });

  test('[MD-4] a refusal of what the request does not have is told', async () => {
    const { server, model } = await serve(
      'openai',
      {},
      { status: 400, body: { error: { message: 'reasoning is off' } } },
    );
    expect(await rejection(collect(model, modelRequest('hello')))).toMatchObject({ kind: 'bad_request' });
    expect(server.requests).toHaveLength(1);
  });

  test('[MD-2] a server that does not stream is understood, calls included', async () => {
    const message = {
      content: 'whole',
      reasoning_content: 'thought',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }],
    };
    const body = {
      id: 'c',
      choices: [{ message, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    };
    const { model } = await serve('openai', {}, { status: 200, body });
    const events = await collect(model, modelRequest('hello'));
    expect(partsOf(events)).toEqual([
      { text: 'thought', thought: true },
      { text: 'whole' },
      { functionCall: { id: 'a', name: 'f', args: { x: 1 } } },
    ]);
    expect(events.at(-2)).toMatchObject({ usage: { totalTokenCount: 3 } });
  });
});

describe('the finish', () => {
  test.each([
    ['stop', 'stop'],
    ['tool_calls', 'stop'],
    ['function_call', 'stop'],
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
    [null, 'stop'],
  ])('[MD-2, MD-4] %s is %s', async (reason, finish) => {
    const { model } = await serve('openai', {}, openAiStream(delta({ content: 'x' }), delta({}, reason)));
    expect((await collect(model, modelRequest('hello'))).at(-1)).toMatchObject({ kind: 'finish', reason: finish });
  });

  test('[MD-2] a connection that stays open behind the end is not waited for', async () => {
    const { server, model } = await serve('openai', {}, { ...GOOD, after: 'hang' } as never);
    expect(partsOf(await collect(model, modelRequest('hello')))).toEqual([{ text: 'fine' }]);
    await server.hungUp;
  });
});

/** Streams a reply, stores the turn as a transcript does, and answers what the next request says of it. */
async function sentBack(...deltas: readonly object[]): Promise<unknown> {
  const { server, model } = await serve(
    'openai',
    {},
    openAiStream(...deltas.map((each) => delta(each)), delta({}, 'stop')),
    GOOD,
  );
  const turn = new ModelTurn({ isUsed: () => false, fresh: () => 'fresh' });
  const hear = (events: readonly ModelEvent[]) => partsOf(events).forEach((part) => void turn.add(part));
  hear(await collect(model, modelRequest('hello')));
  // As JSON, since a restart lies between.
  const stored: Content = JSON.parse(JSON.stringify(turn.content()));
  const responses = (stored.parts ?? []).flatMap(({ functionCall }) =>
    functionCall
      ? [
          {
            functionResponse: {
              id: functionCall.id as string,
              name: functionCall.name as string,
              response: { output: 'ok' },
            },
          },
        ]
      : [],
  );
  await collect(
    model,
    modelRequest([
      { role: 'user', parts: [{ text: 'hello' }] },
      stored,
      { role: 'user', parts: [...responses, { text: 'on' }] },
    ]),
  );
  return server.requests[1]?.body.messages.slice(2);
}

describe('what the provider put on its turn', () => {
  const CALL = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
  const END = [
    { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
    { role: 'user', content: 'on' },
  ];

  test('[MD-5] reasoning_content goes back beside the text and the calls', async () => {
    const back = await sentBack(
      { reasoning_content: 'think ' },
      { reasoning_content: 'hard' },
      { content: 'so' },
      { tool_calls: [{ index: 0, ...CALL }] },
    );
    expect(back).toEqual([
      { role: 'assistant', content: 'so', reasoning_content: 'think hard', tool_calls: [CALL] },
      ...END,
    ]);
  });

  test('[MD-5] thoughts go back in the field that they came in, with their details', async () => {
    const detail = { type: 'reasoning.text', text: 'think', signature: 'sig', index: 0 };
    const back = await sentBack(
      { reasoning: 'think', reasoning_details: [detail] },
      { tool_calls: [{ index: 0, ...CALL }] },
    );
    expect(back).toEqual([
      { role: 'assistant', content: null, reasoning: 'think', reasoning_details: [detail], tool_calls: [CALL] },
      ...END,
    ]);
  });

  test('[MD-5] unknown fields of a call go back on it', async () => {
    const signed = { ...CALL, extra_content: { google: { thought_signature: 'sig' } } };
    const back = await sentBack({ tool_calls: [{ index: 0, ...signed }] });
    expect(back).toEqual([{ role: 'assistant', content: null, tool_calls: [signed] }, ...END]);
  });

  test('[MD-4, MD-5] arguments that were no JSON go back as JSON, which servers insist on', async () => {
    const broken = { ...CALL, function: { name: 'f', arguments: '{"x": ' } };
    const [turn] = (await sentBack({ tool_calls: [{ index: 0, ...broken }] })) as {
      tool_calls: { function: { arguments: string } }[];
    }[];
    expect(JSON.parse(turn?.tool_calls[0]?.function.arguments ?? '')).toEqual({ unreadable_arguments: '{"x": ' });
  });
});

describe('a conversation with others', () => {
  const messages = (contents: Content[], url?: string) =>
    openAiMessages(modelRequest(contents), dialectOf(url ?? 'http://x/v1')).messages.slice(1);
  const turn = (...parts: object[]): Content => ({ role: 'model', parts });
  const said = (...parts: object[]): Content => ({ role: 'user', parts });
  const call = (id: string | undefined) => ({ functionCall: { ...(id && { id }), name: 'f', args: {} } });
  const result = (id: string | undefined, response: object = { output: 'ok' }) => ({
    functionResponse: { ...(id && { id }), name: 'f', response },
  });

  test('[MD-5] calls without ids get ids, the same each time; an id that was used again stays', () => {
    const contents = [
      turn(call(undefined), call(undefined)),
      said(result(undefined), result(undefined)),
      turn(call('a')),
      said(result('a')),
      turn(call('a')),
      said(result('a')),
    ];
    const found = messages(contents);
    expect(messages(contents)).toEqual(found);
    const ids = found.flatMap(
      (message) => (message['tool_calls'] as { id: string }[])?.map(({ id }) => id) ?? message['tool_call_id'],
    );
    expect(ids).toEqual(['call_1', 'call_2', 'call_1', 'call_2', 'a', 'a', 'a', 'a']);
  });

  test('[MD-5] OpenAI itself is sent no thoughts and no id that is too long for it', () => {
    const id = 'x'.repeat(41);
    const [model, tool] = messages(
      [turn({ text: 'hm', thought: true }, call(id)), said(result(id))],
      'https://api.openai.com/v1',
    );
    expect(model).not.toHaveProperty('reasoning_content');
    const [sent] = (model?.['tool_calls'] ?? []) as { id: string }[];
    expect(sent?.id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(tool).toMatchObject({ tool_call_id: sent?.id });
  });

  test('[MD-5] the thoughts of another kind of provider are not passed off as its own', () => {
    const foreign = { text: 'hm', thought: true, thoughtSignature: 's', providerData: { provider: 'anthropic' } };
    expect(messages([turn(foreign, { text: 'a' })])).toEqual([{ role: 'assistant', content: 'a' }]);
  });

  test('[MD-5] a turn of thoughts alone, and an empty one, are left out', () => {
    expect(
      messages([said({ text: 'q' }), turn({ text: 'hm', thought: true }), turn(), said({ text: 'r' })]),
    ).toHaveLength(2);
  });

  test('[MD-2] results: text, an error, an object, an image beside it', () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };
    const shown = { functionResponse: { id: 'c', name: 'f', response: { output: 'see' }, parts: [image] } };
    const contents = [
      turn(call('a'), call('b'), call('c')),
      said(result('a', { error: 'broke' }), result('b', { rows: [1] }), shown),
    ];
    expect(messages(contents).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'broke' },
      { role: 'tool', tool_call_id: 'b', content: '{"rows":[1]}' },
      { role: 'tool', tool_call_id: 'c', content: 'see' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
    ]);
  });

  test.each([
    ['image/png', { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }],
    ['audio/wav', { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } }],
    ['audio/mpeg', { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } }],
    [
      'application/pdf',
      { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
    ],
    ['text/plain', 'hi'],
    ['video/mp4', '[An attachment of type video/mp4, which you cannot be shown.]'],
  ])('[MD-2] %s', (mimeType, sent) => {
    const [message] = messages([said({ inlineData: { mimeType, data: 'aGk=' } })]);
    expect(message?.['content']).toEqual(typeof sent === 'string' ? sent : [sent]);
  });
});
