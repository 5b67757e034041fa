import type { Json } from '../wire.ts';
import { lastOf, type ModelRequest, mergeTurns, type Turn } from './conversation.ts';
import { textOf } from './openai.ts';
import type { Step } from './script.ts';

/** Reads a body of `POST .../messages`. */
export function readAnthropic(body: Json): ModelRequest {
  const messages: Json[] = Array.isArray(body?.messages) ? body.messages : [];
  const turns = mergeTurns(messages.map(turnOf));
  const tools = (body?.tools ?? []).map(({ name }: Json) => String(name));
  return {
    dialect: 'anthropic',
    tools,
    turns,
    last: lastOf(turns),
    streams: body?.stream === true,
    at: performance.now(),
    body,
  };
}

function turnOf({ role, content }: Json): Turn {
  const blocks: Json[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const ofType = (type: string) => blocks.filter((block) => block?.type === type);
  return {
    role: role === 'assistant' ? 'model' : 'user',
    texts: ofType('text').map(({ text }) => String(text)),
    calls: ofType('tool_use').map(({ id, name, input }) => ({ id, name, args: input })),
    results: ofType('tool_result').map((block) => ({ id: block.tool_use_id, text: textOf(block.content) })),
  };
}

const USAGE = { input_tokens: 11, output_tokens: 7 };
const message = (content: readonly object[], stop: string | null) => ({
  id: 'msg_kit',
  type: 'message',
  role: 'assistant',
  model: 'kit',
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: USAGE,
});

/** Makes the events of one reply. */
export function anthropicWriter(nextId: () => string) {
  let index = -1;
  let calls = 0;
  const event = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  const block = (start: object, delta: object) => {
    index += 1;
    return [
      event('content_block_start', { index, content_block: start }),
      event('content_block_delta', { index, delta }),
      event('content_block_stop', { index }),
    ].join('');
  };
  return {
    open: () => event('message_start', { message: message([], null) }),
    step: (step: Step): string => {
      if ('text' in step) return block({ type: 'text', text: '' }, { type: 'text_delta', text: step.text });
      if (!('call' in step)) return '';
      calls += 1;
      const use = { type: 'tool_use', id: nextId(), name: step.call, input: {} };
      return block(use, { type: 'input_json_delta', partial_json: JSON.stringify(step.args) });
    },
    close: () => {
      const delta = { stop_reason: calls > 0 ? 'tool_use' : 'end_turn', stop_sequence: null };
      return `${event('message_delta', { delta, usage: USAGE })}${event('message_stop', {})}`;
    },
  };
}

/** The reply to a request that does not stream. */
export const anthropicWhole = (text: string): object => message([{ type: 'text', text }], 'end_turn');
