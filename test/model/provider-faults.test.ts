import { createServer } from 'node:net';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { withRetries } from '../../src/model/retry.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';
import type { GeminiAnswer } from '../support/gemini-server.ts';
import { anthropicStream, CREATE, delta, openAiStream, serve } from '../support/wire-server.ts';

/** How a provider says things: a refusal's body, a good reply, a reply that has begun, an error in the stream. */
const WIRES = [
  {
    authType: 'openai' as const,
    refusal: (message: string, code: string | null = null) => ({ error: { message, type: 'error', code } }),
    good: openAiStream(delta({ content: 'fine' }, 'stop')),
    begun: [delta({ content: 'so far' })],
    empty: openAiStream(delta({ content: '' }, 'stop')),
    inStream: { error: { message: 'overloaded', code: 503 } },
  },
  {
    authType: 'anthropic' as const,
    refusal: (message: string, type: string | null = null) => ({ type: 'error', error: { type, message } }),
    good: anthropicStream([{ type: 'text', text: 'fine' }]),
    begun: [
      { type: 'message_start', message: { id: 'm', usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'so far' } },
    ],
    empty: anthropicStream([]),
    inStream: { type: 'error', error: { type: 'overloaded_error', message: 'overloaded' } },
  },
];

describe.each(WIRES)('$authType', ({ authType, refusal, good, begun, empty, inStream }) => {
  const overflow = 'This model has a maximum context length of 8 tokens';
  const about = (text: RegExp) => expect.stringMatching(text);

  test.each<[string, GeminiAnswer, object]>([
    ['401', { status: 401, body: refusal('no') }, { kind: 'auth', status: 401, message: about(/THE_KEY.*401: no/) }],
    ['403', { status: 403, body: refusal('no') }, { kind: 'auth', status: 403, message: about(/THE_KEY/) }],
    [
      '404',
      { status: 404, body: refusal('no') },
      { kind: 'bad_request', message: about(/no model "m".*_MODEL and .*_BASE_URL/) },
    ],
    ['400', { status: 400, body: refusal('bad') }, { kind: 'bad_request', status: 400, message: about(/400: bad$/) }],
    ['402', { status: 402, body: refusal('Insufficient Balance') }, { kind: 'bad_request', status: 402 }],
    [
      '429 without money',
      { status: 429, body: refusal('x', 'insufficient_quota') },
      { kind: 'bad_request', status: 429 },
    ],
    [
      '429 with seconds',
      { status: 429, body: refusal('x'), headers: { 'retry-after': '7' } },
      { kind: 'rate_limit', retryAfterMs: 7000 },
    ],
    [
      '429 with milliseconds',
      { status: 429, body: refusal('x'), headers: { 'retry-after': '7', 'retry-after-ms': '6500' } },
      { kind: 'rate_limit', retryAfterMs: 6500 },
    ],
    ['429 without either', { status: 429, body: refusal('x') }, { kind: 'rate_limit', retryAfterMs: undefined }],
    ['500', { status: 500, body: refusal('x') }, { kind: 'server', status: 500 }],
    [
      '502 with a page of HTML',
      { status: 502, body: '<html>bad gateway</html>' },
      { kind: 'server', message: about(/bad gateway/) },
    ],
    ['529', { status: 529, body: refusal('x', 'overloaded_error') }, { kind: 'server', status: 529 }],
    [
      '400 for too long',
      { status: 400, body: refusal(overflow) },
      { kind: 'context_overflow', message: about(/\/compress/) },
    ],
    [
      '400 too long by code',
      { status: 400, body: refusal('x', 'context_length_exceeded') },
      { kind: 'context_overflow' },
    ],
    [
      '400 too long for DashScope',
      { status: 400, body: refusal('Range of input length should be [1, 5]') },
      { kind: 'context_overflow' },
    ],
    [
      '400 too long for Anthropic',
      { status: 400, body: refusal('prompt is too long: 9 tokens > 8 maximum') },
      { kind: 'context_overflow' },
    ],
    ['413', { status: 413, body: refusal('x') }, { kind: 'context_overflow', status: 413 }],
    ['an error in the stream', { chunks: [inStream] }, { kind: 'server', message: about(/overloaded/) }],
    ['an error behind what was said', { chunks: [...begun, inStream] }, { kind: 'server' }],
    [
      'an error as JSON with status 200',
      { status: 200, body: inStream },
      { kind: 'server', message: about(/overloaded/) },
    ],
    ['a reply without an end', { chunks: begun }, { kind: 'broken_stream' }],
    ['no reply', { chunks: [] }, { kind: 'broken_stream' }],
    ['a stream cut inside an event', { chunks: begun, tail: 'data: {"cho' }, { kind: 'broken_stream' }],
    ['an event that is no JSON', { chunks: [], tail: 'data: oops\n\n' }, { kind: 'broken_stream' }],
    [
      'a page of HTML with status 200',
      { status: 200, body: '<html>', headers: { 'content-type': 'text/html' } },
      { kind: 'broken_stream' },
    ],
    ['a connection that is reset', { chunks: begun, after: 'reset' }, { kind: 'broken_stream' }],
    ['an empty reply', empty, { kind: 'empty_reply' }],
  ])('[MD-4] %s', async (_, answer, expected) => {
    const { model } = await serve(authType, {}, answer);
    expect(await rejection(collect(model, modelRequest('hello')))).toMatchObject({
      name: 'ProviderFault',
      ...expected,
    });
  });

  test('[MD-4] 429 with a date', async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const { model } = await serve(authType, {}, { status: 429, body: refusal('x'), headers: { 'retry-after': date } });
    const fault = (await rejection(collect(model, modelRequest('hello')))) as { retryAfterMs: number };
    expect(fault.retryAfterMs).toBeGreaterThan(3_000_000);
    expect(fault.retryAfterMs).toBeLessThanOrEqual(3_600_000);
  });

  test('[MD-4] silence before the reply, and within it, ends the request', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const silent = { kind: 'broken_stream', message: about(/nothing for 60 s/) };
    const { server, model } = await serve(authType, {}, { chunks: begun, after: 'hang' });
    const before = model.stream(modelRequest('hello'))[Symbol.asyncIterator]().next();
    vi.advanceTimersByTime(60_000);
    expect(await rejection(before)).toMatchObject(silent);
    const within = model.stream(modelRequest('hello'))[Symbol.asyncIterator]();
    await within.next();
    vi.advanceTimersByTime(59_000);
    const next = within.next();
    vi.advanceTimersByTime(59_999);
    vi.advanceTimersByTime(1);
    expect(await rejection(next)).toMatchObject(silent);
    await server.hungUp;
  });

  test('[MD-4] a reader that takes its time is no silence', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { model } = await serve(authType, {}, good);
    let said = 0;
    for await (const events of model.stream(modelRequest('hello'))) {
      said += events.length;
      vi.advanceTimersByTime(200_000);
    }
    expect(said).toBeGreaterThan(1);
  });

  test('[MD-4] nobody listens', async () => {
    const { server, model } = await serve(authType, {}, good);
    await server.close();
    const fault = await rejection(collect(model, modelRequest('hello')));
    expect(fault).toMatchObject({ kind: 'server', message: about(/cannot be reached: .*ECONNREFUSED/) });
  });

  test('[MD-4] a server that speaks no TLS, and an address that is none', async () => {
    const plain = createServer((socket) => socket.end('plain text')).listen(0, '127.0.0.1');
    await once(plain, 'listening');
    const { port } = plain.address() as { port: number };
    const { model } = await serve(authType, { baseUrl: `https://127.0.0.1:${port}` });
    expect(await rejection(collect(model, modelRequest('hello')))).toMatchObject({ kind: 'server' });
    plain.close();
    const { model: lost } = await serve(authType, { baseUrl: 'no address' });
    expect(await rejection(collect(lost, modelRequest('hello')))).toMatchObject({
      kind: 'bad_request',
      message: about(/no URL/),
    });
  });

  test('[MD-4] the key never appears in a message, and a long one is cut', async () => {
    const { model } = await serve(authType, {}, { status: 400, body: refusal(`bad secret-key ${'x'.repeat(9999)}`) });
    const { message } = (await rejection(collect(model, modelRequest('hello')))) as Error;
    expect(message).toMatch(/bad \[key\]/);
    expect(message.length).toBeLessThan(700);
  });

  test('[MD-4] retries are ours alone: the SDK asks once, and we again until it is well', async () => {
    const busy = { status: 429, body: refusal('x'), headers: { 'retry-after': '2' } };
    const { server, model } = await serve(authType, {}, busy, { status: 503, body: refusal('x') }, empty, good);
    await rejection(collect(model, modelRequest('hello')));
    expect(server.requests).toHaveLength(1);
    const waits: number[] = [];
    const sleep = async (milliseconds: number) => void waits.push(milliseconds);
    const policy = { attempts: 5, baseMs: 100, maxMs: 1000, maxRetryAfterMs: 5000 };
    const { server: again, model: asked } = await serve(
      authType,
      {},
      busy,
      { status: 503, body: refusal('x') },
      empty,
      good,
    );
    const retrying = withRetries(asked, policy, { sleep, random: () => 1 });
    expect(partsOf(await collect(retrying, modelRequest('hello')))).toEqual([{ text: 'fine' }]);
    expect(waits).toEqual([2000, 200, 400]);
    expect(again.requests).toHaveLength(4);
  });

  test('[MD-4, ACP-7] an abort ends a stream that hangs, with its reason, and closes the connection', async () => {
    const reason = new Error('cancelled by the person');
    const { server, model } = await serve(authType, {}, { chunks: begun, after: 'hang' });
    const controller = new AbortController();
    const stream = model.stream(modelRequest('hello', controller.signal))[Symbol.asyncIterator]();
    await stream.next();
    const next = stream.next();
    controller.abort(reason);
    expect(await rejection(next)).toBe(reason);
    await server.hungUp;
  });

  test('[MD-4] an abort before the request sends nothing; a reader that stops early closes the connection', async () => {
    const reason = new Error('cancelled');
    const { server, model } = await serve(authType, {}, { chunks: begun, after: 'hang' });
    expect(await rejection(collect(model, modelRequest('hello', AbortSignal.abort(reason))))).toBe(reason);
    expect(server.requests).toEqual([]);
    for await (const _ of model.stream(modelRequest('hello'))) break;
    await server.hungUp;
  });

  test('[MD-4] a certificate that is not trusted is not asked again', async () => {
    const error = Object.assign(new TypeError('fetch failed'), {
      cause: Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
    });
    const model = CREATE[authType]({
      authType,
      name: 'm',
      apiKey: 'k',
      variable: 'K',
      idleMs: 0,
      baseUrl: 'https://127.0.0.1:1',
    });
    const original = globalThis.fetch;
    globalThis.fetch = () => Promise.reject(error);
    try {
      const fault = await rejection(collect(model, modelRequest('hello')));
      expect(fault).toMatchObject({ kind: 'bad_request', message: about(/NODE_EXTRA_CA_CERTS: self-signed/) });
    } finally {
      globalThis.fetch = original;
    }
  });
});
