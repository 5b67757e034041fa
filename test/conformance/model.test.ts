import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { CUES, COLOUR, replyTo, SAID } from '../../src/conformance/model/script.ts';
import { FakeModel } from '../../src/conformance/model/server.ts';

const TOOL = 'ask_user_question';
const SCHEMA = { type: 'object' as const };

let model: FakeModel;
beforeEach(async () => {
  model = await FakeModel.start(5_000);
  onTestFinished(() => model.close());
});

interface Heard {
  text: string;
  calls: unknown[];
}

/** What each provider's own SDK hears when a person says this; then what it hears when the call was answered. */
const SDKS: Readonly<Record<string, (text: string, answer?: string) => Promise<Heard>>> = {
  async openai(text, answer) {
    const client = new OpenAI({ baseURL: `${model.url}/v1`, apiKey: 'k', maxRetries: 0 });
    const call = { id: 'call_1', type: 'function' as const, function: { name: TOOL, arguments: '{}' } };
    const stream = client.chat.completions.stream({
      model: 'm',
      tools: [{ type: 'function', function: { name: TOOL, parameters: SCHEMA } }],
      messages: [
        { role: 'system', content: `Mind ${CUES.askTwo}.` },
        { role: 'user', content: text },
        ...(answer === undefined
          ? []
          : [
              { role: 'assistant' as const, tool_calls: [call] },
              { role: 'tool' as const, tool_call_id: 'call_1', content: answer },
            ]),
      ],
    });
    const message = (await stream.finalChatCompletion()).choices[0]?.message;
    const calls = (message?.tool_calls ?? []).map((made) => 'function' in made && JSON.parse(made.function.arguments));
    return { text: message?.content ?? '', calls };
  },
  async anthropic(text, answer) {
    const client = new Anthropic({ baseURL: model.url, apiKey: 'k', maxRetries: 0 });
    const stream = client.messages.stream({
      model: 'm',
      max_tokens: 100,
      tools: [{ name: TOOL, input_schema: SCHEMA }],
      messages: [
        { role: 'user', content: text },
        ...(answer === undefined
          ? []
          : [
              {
                role: 'assistant' as const,
                content: [{ type: 'tool_use' as const, id: 'call_1', name: TOOL, input: {} }],
              },
              {
                role: 'user' as const,
                content: [{ type: 'tool_result' as const, tool_use_id: 'call_1', content: answer }],
              },
            ]),
      ],
    });
    const { content } = await stream.finalMessage();
    const calls = content.flatMap((block) => (block.type === 'tool_use' ? [block.input] : []));
    return { text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''), calls };
  },
  async gemini(text, answer) {
    const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: model.url } });
    const stream = await client.models.generateContentStream({
      model: 'gemini-kit',
      config: { tools: [{ functionDeclarations: [{ name: TOOL }] }] },
      contents: [
        { role: 'user', parts: [{ text }] },
        ...(answer === undefined
          ? []
          : [
              { role: 'model', parts: [{ functionCall: { name: TOOL, args: {} } }] },
              { role: 'user', parts: [{ functionResponse: { name: TOOL, response: { output: answer } } }] },
            ]),
      ],
    });
    const heard: Heard = { text: '', calls: [] };
    for await (const { candidates } of stream) {
      for (const part of candidates?.[0]?.content?.parts ?? []) {
        heard.text += part.text ?? '';
        if (part.functionCall) heard.calls.push(part.functionCall.args);
      }
    }
    return heard;
  },
};

describe.each(Object.entries(SDKS))("the kit's model, heard by the SDK of %s", (dialect, hear) => {
  test('says, asks and is told', async () => {
    expect(await hear(`${CUES.say} hello`)).toEqual({ text: SAID.join(''), calls: [] });
    expect(await hear(`please ${CUES.askOne}`)).toEqual({ text: '', calls: [{ questions: [COLOUR] }] });
    expect((await hear(`please ${CUES.askTwo}`)).calls).toHaveLength(2);
    expect(await hear(CUES.askOne, 'Blue')).toEqual({ text: 'The tool said: Blue', calls: [] });

    expect(model.requests.map((request) => request.dialect)).toEqual([dialect, dialect, dialect, dialect]);
    expect(model.requests.every(({ tools }) => tools.join() === TOOL)).toBe(true);
    expect(model.prompted(CUES.askOne)).toHaveLength(1);
    expect(model.told.map(({ last }) => last.results.map(({ text }) => text))).toEqual([['Blue']]);
    expect(model.told[0]?.turns.map(({ role, calls }) => [role, calls.length])).toEqual([
      ['user', 0],
      ['model', 1],
      ['user', 0],
    ]);
  });
});

test('without tools a cue of a tool is quoted text', () => {
  const last = { role: 'user' as const, texts: [`A title for: ${CUES.askOne}`], calls: [], results: [] };
  expect(replyTo({ last, tools: [] })).toEqual(SAID.map((text) => ({ text })));
});
