import { expect, onTestFinished, test } from 'vitest';
import { type GeminiAnswer, startGeminiServer } from '../support/gemini-server.ts';
import { Home, Peer, submit } from '../support/peer.ts';
import { COLOUR } from '../support/sessions.ts';
import { anthropicStream, delta, openAiStream } from '../support/wire-server.ts';

const QUESTION = { questions: [COLOUR] };

interface Wire {
  readonly provider: string;
  readonly env: (url: string) => Record<string, string>;
  readonly answers: readonly GeminiAnswer[];
  /** The model's turn with the question, and the answer, as they are sent after the restart. */
  readonly back: (body: { messages: { content: unknown }[] }) => unknown;
  readonly expected: unknown;
}

const CALL = {
  id: 'call_own',
  type: 'function',
  function: { name: 'ask_user_question', arguments: JSON.stringify(QUESTION) },
};
const SIGNED = [
  { type: 'thinking', thinking: 'hm', signature: 'sig' },
  { type: 'redacted_thinking', data: 'hidden' },
  { type: 'tool_use', id: 'toolu_own', name: 'ask_user_question', input: QUESTION, caller: { type: 'direct' } },
];

const WIRES: readonly Wire[] = [
  {
    provider: 'openai',
    env: (url) => ({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: url, OPENAI_MODEL: 'm' }),
    answers: [
      openAiStream(
        delta({ reasoning: 'hm' }),
        delta({ tool_calls: [{ index: 0, ...CALL, extra_content: { signature: 'sig' } }] }),
        delta({}, 'tool_calls'),
      ),
      openAiStream(delta({ content: 'Red it is.' }, 'stop')),
    ],
    back: ({ messages }) => messages.slice(2),
    expected: [
      {
        role: 'assistant',
        content: null,
        reasoning: 'hm',
        tool_calls: [{ ...CALL, extra_content: { signature: 'sig' } }],
      },
      { role: 'tool', tool_call_id: 'call_own', content: expect.stringMatching(/Red/) },
    ],
  },
  {
    provider: 'anthropic',
    env: (url) => ({ ANTHROPIC_API_KEY: 'x', ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: 'claude-test' }),
    answers: [anthropicStream(SIGNED, 'tool_use'), anthropicStream([{ type: 'text', text: 'Red it is.' }])],
    back: ({ messages }) => messages.slice(1).map(({ content }) => content),
    expected: [
      SIGNED,
      [
        expect.objectContaining({
          type: 'tool_result',
          tool_use_id: 'toolu_own',
          content: expect.stringMatching(/Red/),
        }),
      ],
    ],
  },
];

test.each(WIRES)(
  '[MD-2, MD-5, CLI-6] $provider: a question is answered after a kill, and the model gets its turn back as it was',
  async ({ env, answers, back, expected }) => {
    const server = await startGeminiServer(...answers);
    onTestFinished(() => server.close());
    const home = new Home();
    const start = () => Peer.start({ home, restore: true, script: null, env: env(server.url) });
    const first = await start();
    const sessionId = await first.newSession();
    void first.prompt(sessionId, 'choose').catch(() => {});
    await first.question();
    first.child.kill('SIGKILL');
    await first.exited;

    const second = await start();
    await second.load(sessionId);
    const turn = second.restore(sessionId);
    (await second.question()).answer(submit({ 0: 'Red' }));
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
    expect(second.wire.some(({ message }) => JSON.stringify(message).includes('Red it is.'))).toBe(true);
    expect(server.requests).toHaveLength(2);
    expect(back(server.requests[1]?.body)).toEqual(expected);
  },
);

test.each([
  ['openai', 'OPENAI_API_KEY'],
  ['anthropic', 'ANTHROPIC_API_KEY'],
])('[CLI-6, MD-4] %s without a key refuses a session and says what to set', async (authType, variable) => {
  const peer = await Peer.start({ script: null, args: ['--auth-type', authType] });
  await expect(peer.newSession()).rejects.toMatchObject({ code: -32000, message: expect.stringContaining(variable) });
});
