import type { Json } from '../wire.ts';
import { lastOf, type ModelRequest, mergeTurns, type Result, type Turn } from './conversation.ts';
import type { Step } from './script.ts';

/** Reads a body of `POST .../models/<name>:streamGenerateContent`; `streams` as its address says. */
export function readGemini(body: Json, streams: boolean): ModelRequest {
  const contents: Json[] = Array.isArray(body?.contents) ? body.contents : [];
  const turns = mergeTurns(contents.map(turnOf));
  const declared = (body?.tools ?? []).flatMap((tool: Json) => tool?.functionDeclarations ?? []);
  const tools = declared.map(({ name }: Json) => String(name));
  return { dialect: 'gemini', tools, turns, last: lastOf(turns), streams, at: performance.now(), body };
}

function turnOf({ role, parts = [] }: Json): Turn {
  const list: Json[] = parts;
  return {
    role: role === 'model' ? 'model' : 'user',
    texts: list.flatMap(({ text, thought }) => (typeof text === 'string' && text !== '' && !thought ? [text] : [])),
    calls: list.flatMap(({ functionCall }) => (functionCall ? [functionCall] : [])),
    results: list.flatMap(({ functionResponse }) => (functionResponse ? [resultOf(functionResponse)] : [])),
  };
}

function resultOf({ id, name, response }: Json): Result {
  const said = response?.output ?? response?.error ?? response;
  return { name, text: typeof said === 'string' ? said : JSON.stringify(said), ...(id !== undefined && { id }) };
}

const USAGE = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };
const chunk = (parts: readonly object[], rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }],
  usageMetadata: USAGE,
  modelVersion: 'kit',
  responseId: 'kit',
});

/** Makes the events of one reply; as is the custom there, calls bear no id. */
export function geminiWriter() {
  const event = (value: object) => `data: ${JSON.stringify(value)}\r\n\r\n`;
  return {
    open: () => '',
    step: (step: Step): string => {
      if ('text' in step) return event(chunk([{ text: step.text }]));
      return 'call' in step ? event(chunk([{ functionCall: { name: step.call, args: step.args } }])) : '';
    },
    close: () => event(chunk([{ text: '' }], { finishReason: 'STOP' })),
  };
}

/** The reply to a request that does not stream. */
export const geminiWhole = (text: string): object => chunk([{ text }], { finishReason: 'STOP' });
