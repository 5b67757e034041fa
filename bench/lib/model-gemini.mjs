// The fake model as a Gemini endpoint: POST /v1beta/models/<model>:streamGenerateContent?alt=sse. As is the custom
// there, calls bear no id and every chunk bears the usage so far.

const USAGE = { promptTokenCount: 100, candidatesTokenCount: 10, totalTokenCount: 110 };

/** The conversation of a request body: one turn a part, so that a text after a function response counts. */
export function readTurns(body) {
  return (body.contents ?? []).flatMap((content) =>
    (content.parts ?? []).map((part) => {
      const { response } = part.functionResponse ?? {};
      if (response)
        return { role: 'tool', text: String(response.output ?? response.error ?? JSON.stringify(response)) };
      return { role: content.role === 'model' ? 'assistant' : 'user', text: part.text ?? '' };
    }),
  );
}

const chunk = (parts, rest = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...rest }],
  usageMetadata: USAGE,
  modelVersion: 'bench-model',
  responseId: 'bench',
});

/** The reply as server-sent events. */
export function writeStream(reply) {
  const call = reply.call ? [{ functionCall: { name: reply.call.name, args: JSON.parse(reply.call.args) } }] : [];
  const parts = [
    ...reply.thoughts.map((text) => ({ text, thought: true })),
    ...reply.texts.map((text) => ({ text })),
    ...call,
  ];
  const chunks = [...parts.map((part) => chunk([part])), chunk([{ text: '' }], { finishReason: 'STOP' })];
  return chunks.map((value) => `data: ${JSON.stringify(value)}\r\n\r\n`).join('');
}

/** The answer to a request that does not stream: always "ok". */
export function writeWhole() {
  return chunk([{ text: 'ok' }], { finishReason: 'STOP' });
}
