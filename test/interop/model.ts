import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

// biome-ignore lint/suspicious/noExplicitAny: requests of two providers, of which only the last turn is read
type Json = any;

/** What the model is asked: the last turn's texts, and the responses of tools in it. */
interface LastTurn {
  readonly text: string;
  readonly responses: readonly string[];
}

interface Reply {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly args: object }[];
}

const option = (label: string, description: string) => ({ label, description });
const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  options: [option('Red', 'warm'), option('Blue', 'cold')],
  multiSelect: false,
};
const SIZE = {
  question: 'Which size?',
  header: 'Size',
  options: [option('Small', 'one'), option('Large', 'two')],
  multiSelect: false,
};
const asks = (...questions: object[]) => ({ name: 'ask_user_question', args: { questions } });

/** Asks on a mark in the user's text, echoes what tools answered, and says a plain reply otherwise. */
function replyTo({ text, responses }: LastTurn): Reply {
  const mark = /\[\[(\w+)\]\]/.exec(text)?.[1];
  if (mark === 'ask') return { calls: [asks(COLOUR)] };
  if (mark === 'two') return { calls: [asks(COLOUR, SIZE)] };
  if (mark === 'batch') return { calls: [asks(COLOUR), asks(SIZE)] };
  if (mark === 'write')
    return { calls: [{ name: 'write_file', args: { file_path: wordAfter(text), content: 'hi\n' } }] };
  if (mark === 'sleep') return { text: 'SLEEPING' };
  if (text.includes('<state_snapshot>')) return { text: '<state_snapshot>WHAT WAS SAID</state_snapshot>' };
  if (responses.length > 0) return { text: `ECHO ${responses.join(' | ')}` };
  return { text: 'PLAIN REPLY' };
}

const wordAfter = (text: string): string => /\[\[write\]\] (\S+)/.exec(text)?.[1] ?? '';

/** A model on loopback, in the dialects of OpenAI and of Gemini at once. */
export interface ModelServer {
  /** What an agent of either kind needs to use it, by the name of its provider. */
  readonly env: Readonly<Record<'gemini' | 'openai', Readonly<Record<string, string>>>>;
  /** The last turn of each request so far. */
  readonly asked: readonly LastTurn[];
  /** The names of the tools that the last request offered. */
  offered(): readonly string[];
  close(): Promise<void>;
}

export async function startModel(): Promise<ModelServer> {
  const asked: LastTurn[] = [];
  const held = new Set<ServerResponse>();
  let calls = 0;
  let offered: readonly string[] = [];
  const server = createServer(async (request, response) => {
    const { body, tokens } = await bodyOf(request);
    const gemini = request.url?.includes('/models/') === true && request.url.includes(':');
    const last = gemini ? lastOfGemini(body) : lastOfOpenai(body);
    asked.push(last);
    offered = toolsOf(body);
    const reply = replyTo(last);
    const ids = reply.calls?.map(() => `call_interop_${++calls}`) ?? [];
    const whole = gemini ? !request.url?.includes(':stream') : body.stream !== true;
    response.writeHead(200, { 'content-type': whole ? 'application/json' : 'text/event-stream' });
    response.write(gemini ? geminiText(reply, ids, tokens, whole) : openaiText(reply, ids, tokens, whole));
    // It never ends what it says: the turn has to be cancelled.
    if (reply.text === 'SLEEPING') held.add(response);
    else response.end(gemini || whole ? '' : 'data: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    asked,
    offered: () => offered,
    env: {
      gemini: { GEMINI_API_KEY: 'none', GEMINI_MODEL: 'fake-model', GOOGLE_GEMINI_BASE_URL: url },
      openai: { OPENAI_API_KEY: 'none', OPENAI_MODEL: 'fake-model', OPENAI_BASE_URL: `${url}/v1` },
    },
    async close() {
      for (const response of held) response.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A request with about as many tokens as its text would have. */
async function bodyOf(request: IncomingMessage): Promise<{ readonly body: Json; readonly tokens: number }> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return { body: text === '' ? {} : JSON.parse(text), tokens: Math.ceil(text.length / 4) };
}

function toolsOf({ tools = [] }: Json): string[] {
  return tools.flatMap((tool: Json) => tool.functionDeclarations ?? tool.function ?? []).map(({ name }: Json) => name);
}

function lastOfGemini({ contents = [] }: Json): LastTurn {
  const turn: Json[] = contents.slice(contents.findLastIndex(({ role }: Json) => role === 'model') + 1);
  const parts: Json[] = turn.flatMap((content) => content.parts ?? []);
  return {
    text: parts.flatMap(({ text }) => text ?? []).join('\n'),
    responses: parts.flatMap(({ functionResponse }) => (functionResponse ? outcomeOf(functionResponse.response) : [])),
  };
}

const outcomeOf = (response: Json): string => String(response?.output ?? response?.error ?? '');

function lastOfOpenai({ messages = [] }: Json): LastTurn {
  const turn: Json[] = messages.slice(messages.findLastIndex(({ role }: Json) => role === 'assistant') + 1);
  const textOf = (content: Json): string =>
    typeof content === 'string' ? content : (content ?? []).map(({ text }: Json) => text ?? '').join('\n');
  const of = (role: string) => turn.filter((message) => message.role === role).map(({ content }) => textOf(content));
  return { text: of('user').join('\n'), responses: of('tool') };
}

function geminiText({ text, calls = [] }: Reply, ids: readonly string[], tokens: number, whole: boolean): string {
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map((call, at) => ({ functionCall: { id: ids[at], ...call } })),
  ];
  const chunk = {
    candidates: [{ content: { role: 'model', parts }, ...(text !== 'SLEEPING' && { finishReason: 'STOP' }), index: 0 }],
    usageMetadata: { promptTokenCount: tokens, candidatesTokenCount: 7, totalTokenCount: tokens + 7 },
  };
  return whole ? JSON.stringify(chunk) : `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}

function openaiText({ text, calls = [] }: Reply, ids: readonly string[], tokens: number, whole: boolean): string {
  const finish_reason = calls.length > 0 ? 'tool_calls' : 'stop';
  const usage = { prompt_tokens: tokens, completion_tokens: 7, total_tokens: tokens + 7 };
  const tool_calls = calls.map(({ name, args }, index) => ({
    index,
    id: ids[index],
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  const said = { role: 'assistant', content: text ?? '', ...(calls.length > 0 && { tool_calls }) };
  const common = { id: 'chatcmpl-interop', created: 1_700_000_000, model: 'fake-model' };
  if (whole) {
    const choices = [{ index: 0, message: said, finish_reason }];
    return JSON.stringify({ ...common, object: 'chat.completion', choices, usage });
  }
  const event = (rest: object) =>
    `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', ...rest })}\n\n`;
  const first = event({ choices: [{ index: 0, delta: said, finish_reason: null }] });
  if (text === 'SLEEPING') return first;
  return `${first}${event({ choices: [{ index: 0, delta: {}, finish_reason }] })}${event({ choices: [], usage })}`;
}
