// The fake model as an OpenAI-compatible chat-completions endpoint.

let calls = 0;

/** The conversation of a request body. */
export function readTurns(body) {
  return (body.messages ?? []).map((message) => ({ role: message.role, text: textOf(message.content) }));
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => part?.text ?? '').join('\n') : '';
}

/** The reply as server-sent events. */
export function writeStream(reply) {
  const chunk = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench-model' };
  const event = (rest) => `data: ${JSON.stringify({ ...chunk, ...rest })}\n\n`;
  const delta = (value, finish_reason = null) => event({ choices: [{ index: 0, delta: value, finish_reason }] });
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
  return [
    delta({ role: 'assistant', content: '' }),
    ...reply.thoughts.map((text) => delta({ reasoning_content: text })),
    ...reply.texts.map((text) => delta({ content: text })),
    ...callDeltas(reply.call).map((call) => delta({ tool_calls: [call] })),
    delta({}, reply.call ? 'tool_calls' : 'stop'),
    event({ choices: [], usage }),
    'data: [DONE]\n\n',
  ].join('');
}

function callDeltas(call) {
  if (!call) return [];
  const id = `call_bench_${++calls}`;
  return [
    { index: 0, id, type: 'function', function: { name: call.name, arguments: '' } },
    { index: 0, function: { arguments: call.args } },
  ];
}

/** The answer to a request that does not stream: always "ok". */
export function writeWhole() {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }];
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return { id: 'x', object: 'chat.completion', created: 1, model: 'bench-model', choices, usage };
}
