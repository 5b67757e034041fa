import { isObject, type Json } from '../wire.ts';
import { type Call, lastOf, type ModelRequest, mergeTurns, type Turn } from './conversation.ts';
import type { Step } from './script.ts';

/** Reads a body of `POST .../chat/completions`. */
export function readOpenAi(body: Json): ModelRequest {
  const messages: Json[] = Array.isArray(body?.messages) ? body.messages : [];
  const spoken = messages.filter(({ role }) => role !== 'system' && role !== 'developer');
  const turns = mergeTurns(spoken.map(turnOf));
  const tools = (body?.tools ?? []).map((tool: Json) => String(tool?.function?.name));
  return {
    dialect: 'openai',
    tools,
    turns,
    last: lastOf(turns),
    streams: body?.stream === true,
    at: performance.now(),
    body,
  };
}

function turnOf(message: Json): Turn {
  const text = textOf(message.content);
  if (message.role === 'tool') {
    return { role: 'user', texts: [], calls: [], results: [{ id: message.tool_call_id, text }] };
  }
  const calls: Call[] = (message.tool_calls ?? []).map(({ id, function: { name, arguments: args } }: Json) => ({
    id,
    name,
    args: parsed(args),
  }));
  return {
    role: message.role === 'assistant' ? 'model' : 'user',
    texts: text === '' ? [] : [text],
    calls,
    results: [],
  };
}

/** The text of a message's content, in any of its forms. */
export function textOf(content: Json): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('\n');
}

function parsed(text: Json): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const HEAD = { id: 'chatcmpl-kit', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'kit' };
const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** Makes the events of one reply. */
export function openAiWriter(nextId: () => string) {
  let calls = 0;
  const event = (rest: object) => `data: ${JSON.stringify({ ...HEAD, ...rest })}\n\n`;
  const delta = (value: object, finish: string | null = null) =>
    event({ choices: [{ index: 0, delta: value, finish_reason: finish }] });
  return {
    open: () => delta({ role: 'assistant', content: '' }),
    step: (step: Step): string => {
      if ('text' in step) return delta({ content: step.text });
      if (!('call' in step)) return '';
      const call = {
        index: calls,
        id: nextId(),
        type: 'function',
        function: { name: step.call, arguments: JSON.stringify(step.args) },
      };
      calls += 1;
      return delta({ tool_calls: [call] });
    },
    close: () =>
      `${delta({}, calls > 0 ? 'tool_calls' : 'stop')}${event({ choices: [], usage: USAGE })}data: [DONE]\n\n`,
  };
}

/** The reply to a request that does not stream. */
export function openAiWhole(text: string): object {
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }];
  return { ...HEAD, object: 'chat.completion', choices, usage: USAGE };
}
