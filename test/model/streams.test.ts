import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from '@google/genai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnthropicReply } from '../../src/model/anthropic-stream.ts';
import type { Reply } from '../../src/model/exchange.ts';
import { OpenAiReply } from '../../src/model/openai-stream.ts';
import { readEventData } from '../../src/model/sse.ts';
import { ModelTurn } from '../../src/session/model-turn.ts';
import type { ModelEvent } from '../../src/session/ports.ts';

const STREAMS = join(import.meta.dirname, '../fixtures/streams');
const streamOf = (name: string): Buffer => readFileSync(join(STREAMS, `${name}.sse`));
const replyFor = (name: string): Reply => (name.startsWith('anthropic') ? new AnthropicReply() : new OpenAiReply());

/** All that a reply says when its bytes come in these pieces. */
async function hear(reply: Reply, pieces: readonly Uint8Array[]): Promise<ModelEvent[]> {
  const heard: ModelEvent[] = [];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  reading: for await (const events of readEventData(body)) {
    for (const data of events) if (!reply.take(data, heard)) break reading;
  }
  return [...heard, ...reply.end()];
}

/** The model turn that is stored. */
function stored(events: readonly ModelEvent[]): Part[] {
  const turn = new ModelTurn({ isUsed: () => false, fresh: () => 'fresh' });
  for (const event of events) if (event.kind === 'part') turn.add(event.part);
  return turn.content().parts ?? [];
}

const call = (id: string, name: string, args: object, rest: object = {}) => ({
  functionCall: { id, name, args },
  ...rest,
});
const usage = (prompt: number, candidates: number, thoughts = 0, cached = 0, total = prompt + candidates) => ({
  promptTokenCount: prompt,
  candidatesTokenCount: candidates,
  thoughtsTokenCount: thoughts,
  totalTokenCount: total,
  cachedContentTokenCount: cached,
});
const thoughtsIn = (field: object) => ({ providerData: { provider: 'openai', ...field } });

interface Heard {
  readonly parts: readonly object[];
  readonly finish?: string;
  readonly usage?: object;
}

const RECORDED: readonly [string, Heard][] = [
  ['openai-text', { parts: [{ text: 'Hello – 世界' }], usage: usage(19, 10) }],
  [
    'openai-parallel-tools',
    {
      parts: [
        call('call_DdmO9pD3xa9XTPNJ32zg2hcA', 'get_weather', { location: 'Zürich 🌧' }),
        call('call_ydXZqbVGJ1yT9XcGmyrAXYjc', 'get_time', {}),
      ],
      usage: usage(81, 42, 12, 64),
    },
  ],
  ['openai-refusal', { parts: [{ text: 'I cannot help with that.' }], finish: 'refusal' }],
  [
    'dashscope-thinking-tools',
    {
      parts: [
        { text: 'The user asks for the weather.', thought: true },
        call('call_9f9a3ec37a4a4d1a9b2d2b', 'get_current_weather', { location: '杭州' }),
      ],
      usage: usage(255, 110, 87),
    },
  ],
  [
    'deepseek-reasoner',
    { parts: [{ text: '9.11 is less.', thought: true }, { text: '9.8 is greater.' }], usage: usage(17, 30, 20) },
  ],
  [
    'vllm-reasoning-tools',
    {
      parts: [
        { text: 'Need both.', thought: true },
        { text: '\n\nLooking.' },
        thoughtsIn({ thoughtField: 'reasoning' }),
        call('chatcmpl-tool-1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e', 'read_file', { file_path: '/a' }),
        call('chatcmpl-tool-2a4b6c8d0e1f3a5b7c9d1e3f5a7b9c0d', 'read_file', { file_path: '/b' }),
      ],
      usage: usage(200, 60),
    },
  ],
  [
    'ollama-tools',
    {
      parts: [
        { text: 'Two files.', thought: true },
        thoughtsIn({ thoughtField: 'reasoning' }),
        call('call_kq3v8x1a', 'read_file', { file_path: '/a' }),
        call('call_z7m2p5wd', 'read_file', { file_path: '/b' }),
      ],
      usage: usage(150, 40),
    },
  ],
  [
    'openrouter-reasoning-details',
    {
      parts: [
        { text: 'Let me see.', thought: true },
        thoughtsIn({
          thoughtField: 'reasoning',
          fields: {
            reasoning_details: [
              { type: 'reasoning.text', text: 'Let me see.', format: 'google-gemini-v1', index: 0 },
              {
                type: 'reasoning.encrypted',
                data: 'RU5DUllQVEVE',
                id: 'tool_0_read_file',
                format: 'google-gemini-v1',
                index: 0,
              },
            ],
          },
        }),
        call(
          'tool_0_read_file',
          'read_file',
          { file_path: '/a' },
          {
            providerData: { provider: 'openai', fields: { extra_content: { google: { thought_signature: 'U0lH' } } } },
          },
        ),
      ],
      usage: usage(90, 31, 20, 10),
    },
  ],
  [
    'anthropic-thinking-tools',
    {
      parts: [
        {
          text: 'The file first.',
          thought: true,
          thoughtSignature: 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds==',
          providerData: { provider: 'anthropic' },
        },
        { providerData: { provider: 'anthropic', block: expect.objectContaining({ type: 'redacted_thinking' }) } },
        { text: 'Let me look 👀.' },
        call(
          'toolu_01T1x1fJ34qAmk2tNTrN7Up6',
          'get_weather',
          { location: 'San Francisco, CA' },
          { providerData: { provider: 'anthropic', fields: { caller: { type: 'direct' } } } },
        ),
        call('toolu_02', 'get_time', {}),
      ],
      usage: usage(602, 89, 0, 30),
    },
  ],
];

describe('streams as providers send them', () => {
  test.each(RECORDED)('[MD-2, MD-5] %s', async (name, expected) => {
    const events = await hear(replyFor(name), [streamOf(name)]);
    expect(stored(events)).toEqual(expected.parts);
    expect(events.at(-1)).toMatchObject({ kind: 'finish', reason: expected.finish ?? 'stop' });
    expect(events.find(({ kind }) => kind === 'usage')).toEqual(
      expected.usage && { kind: 'usage', usage: expected.usage },
    );
  });

  test('[MD-2, MD-4] say the same however their bytes are cut', async () => {
    const whole = await Promise.all(RECORDED.map(([name]) => hear(replyFor(name), [streamOf(name)])));
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.nat(RECORDED.length - 1), cuts, async (at, places) => {
        const name = RECORDED[at]?.[0] ?? '';
        const bytes = streamOf(name);
        const ends = [...places.map((place) => Math.floor(place * bytes.length)), bytes.length].sort((a, b) => a - b);
        const pieces = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        expect(await hear(replyFor(name), pieces)).toEqual(whole[at]);
      }),
      { numRuns: 40 },
    );
  });

  test('[MD-2, MD-4] end as broken or with all that was said, wherever they break off', async () => {
    for (const [name] of RECORDED) {
      const bytes = streamOf(name);
      for (let end = 0; end < bytes.length; end += 97) {
        const outcome = await hear(replyFor(name), [bytes.subarray(0, end)]).then(
          (events) => JSON.stringify(stored(events)),
          (error: Error) => error.name,
        );
        const complete = JSON.stringify(stored(await hear(replyFor(name), [bytes])));
        expect([complete, 'ProviderFault', 'SyntaxError']).toContain(outcome);
      }
    }
  });
});

/** A chat completion whose deltas are these. */
const chat = (...deltas: readonly object[]): Buffer => {
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta }] }));
  const last = { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] };
  return Buffer.from([...chunks, last].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''));
};
const piece = (index: number | undefined, fn: object, rest: object = {}) => ({
  tool_calls: [{ ...(index !== undefined && { index }), function: fn, ...rest }],
});

describe('tool calls in pieces', () => {
  test.each<[string, readonly object[], readonly object[]]>([
    [
      'a name in pieces',
      [
        piece(0, { name: 'read_' }, { id: 'a' }),
        piece(0, { name: 'file', arguments: '{"x":' }),
        piece(0, { arguments: '1}' }),
      ],
      [call('a', 'read_file', { x: 1 })],
    ],
    [
      'the whole name with every piece',
      [piece(0, { name: 'f', arguments: '{"x"' }, { id: 'a' }), piece(0, { name: 'f', arguments: ':1}' }, { id: 'a' })],
      [call('a', 'f', { x: 1 })],
    ],
    [
      'one number, two ids, in pieces',
      [
        piece(0, { name: 'f', arguments: '{"x":' }, { id: 'a' }),
        piece(0, { arguments: '1}' }),
        piece(0, { name: 'f', arguments: '{"x":' }, { id: 'b' }),
        piece(0, { arguments: '2}' }, { id: 'b' }),
      ],
      [call('a', 'f', { x: 1 }), call('b', 'f', { x: 2 })],
    ],
    [
      'one number, two ids, the first piece without arguments',
      [
        piece(0, { name: 'f', arguments: '{"x":1}' }, { id: 'a' }),
        piece(0, { name: 'g', arguments: '' }, { id: 'b' }),
        piece(0, { arguments: '{"x":2}' }),
      ],
      [call('a', 'f', { x: 1 }), call('b', 'g', { x: 2 })],
    ],
    [
      'no numbers, no ids, whole calls',
      [piece(undefined, { name: 'f', arguments: '{"x":1}' }), piece(undefined, { name: 'f', arguments: '{"x":2}' })],
      [
        { functionCall: { id: 'fresh', name: 'f', args: { x: 1 } } },
        { functionCall: { id: 'fresh', name: 'f', args: { x: 2 } } },
      ],
    ],
    [
      'two calls in one piece',
      [
        {
          tool_calls: [
            { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } },
            { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } },
          ],
        },
      ],
      [call('a', 'f', {}), call('b', 'g', {})],
    ],
    ['no arguments', [piece(0, { name: 'f' }, { id: 'a' })], [call('a', 'f', {})]],
    ['arguments that are null', [piece(0, { name: 'f', arguments: 'null' }, { id: 'a' })], [call('a', 'f', {})]],
    ['arguments as an object', [piece(0, { name: 'f', arguments: { x: 1 } }, { id: 'a' })], [call('a', 'f', { x: 1 })]],
    [
      'arguments encoded twice',
      [piece(0, { name: 'f', arguments: '"{\\"x\\":1}"' }, { id: 'a' })],
      [call('a', 'f', { x: 1 })],
    ],
    [
      'the call of an older protocol',
      [{ function_call: { name: 'f', arguments: '{"x":' } }, { function_call: { arguments: '1}' } }],
      [{ functionCall: { id: 'fresh', name: 'f', args: { x: 1 } } }],
    ],
    [
      'arguments that are cut off are kept as they are',
      [piece(0, { name: 'f', arguments: '{"x": "ab' }, { id: 'a' })],
      [call('a', 'f', { unreadable_arguments: '{"x": "ab' })],
    ],
    [
      'arguments that are a list are kept as they are',
      [piece(0, { name: 'f', arguments: '[1]' }, { id: 'a' })],
      [call('a', 'f', { unreadable_arguments: '[1]' })],
    ],
    ['a piece without a name is no call', [piece(0, { arguments: '{}' }), { content: 'x' }], [{ text: 'x' }]],
  ])('[MD-2, MD-4] %s', async (_, deltas, expected) => {
    expect(stored(await hear(new OpenAiReply(), [chat(...deltas)]))).toEqual(expected);
  });

  test('[MD-2] calls in any interleaving of their pieces are put together by number', async () => {
    const args = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(args, { minLength: 1, maxLength: 5 }),
        fc.infiniteStream(fc.nat(1000)),
        async (calls, random) => {
          const next = () => random.next().value as number;
          const left = calls.map((value, index) => {
            const text = JSON.stringify(value);
            const pieces = text.match(/[\s\S]{1,3}/gu) ?? [];
            return [
              piece(index, { name: `f${index}` }, { id: `id${index}` }),
              ...pieces.map((each) => piece(index, { arguments: each })),
            ];
          });
          const deltas: object[] = [];
          // First pieces in order, as a server begins one call after the other.
          for (const queue of left) deltas.push(queue.shift() as object);
          while (left.some((queue) => queue.length > 0)) {
            const open = left.filter((queue) => queue.length > 0);
            deltas.push(open[next() % open.length]?.shift() as object);
          }
          const parts = stored(await hear(new OpenAiReply(), [chat(...deltas)]));
          expect(parts).toEqual(
            calls.map((value, index) => call(`id${index}`, `f${index}`, JSON.parse(JSON.stringify(value)))),
          );
        },
      ),
      { numRuns: 40 },
    );
  });
});
