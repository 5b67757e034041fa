import { onTestFinished } from 'vitest';
import { createAnthropicModel } from '../../src/model/anthropic.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import { createOpenAiModel } from '../../src/model/openai.ts';
import type { Model } from '../../src/session/ports.ts';
import { type GeminiAnswer, type GeminiServer, startGeminiServer } from './gemini-server.ts';

export const CREATE = { openai: createOpenAiModel, anthropic: createAnthropicModel };

/** A server on loopback that answers one request after the other with these, and a model that asks it. */
export async function serve(
  authType: keyof typeof CREATE,
  endpoint: Partial<Endpoint>,
  ...answers: readonly GeminiAnswer[]
): Promise<{ server: GeminiServer; model: Model }> {
  const server = await startGeminiServer(...answers);
  onTestFinished(() => server.close());
  const settled = {
    authType,
    name: 'm',
    apiKey: 'secret-key',
    variable: 'THE_KEY',
    idleMs: 60_000,
    baseUrl: server.url,
  };
  return { server, model: CREATE[authType]({ ...settled, ...endpoint }) };
}

/** A stream of events of OpenAI's kind. */
export function openAiStream(...chunks: readonly object[]): GeminiAnswer {
  return {
    chunks: [],
    tail: `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`,
  };
}

export const delta = (said: object, finish_reason: string | null = null): object => ({
  id: 'c1',
  choices: [{ index: 0, delta: said, finish_reason }],
});

/** A stream of events of Anthropic's kind: a message with these blocks, each whole in its start. */
export function anthropicStream(blocks: readonly object[], stop_reason = 'end_turn'): GeminiAnswer {
  const events = [
    { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } },
    ...blocks.flatMap((content_block, index) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
  return { chunks: events };
}
