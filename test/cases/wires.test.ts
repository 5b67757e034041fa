import { expect, onTestFinished, test } from 'vitest';
import { responseIds } from '../support/evidence.ts';
import { chunk, type GeminiAnswer, startGeminiServer } from '../support/gemini-server.ts';
import { Home, Peer } from '../support/peer.ts';
import { asks, COLOUR, dangling, FEATURES } from '../support/sessions.ts';
import { tempFolder } from '../support/temp.ts';
import { anthropicStream, delta, openAiStream } from '../support/wire-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: a provider's request
type Any = any;

const COMMAND = { command: 'echo started; sleep 60' };

interface Wire {
  readonly provider: string;
  readonly env: (url: string) => Record<string, string>;
  /** The model says `fine`, or calls a command that does not end, under the id `call_2` or one of its own. */
  readonly fine: GeminiAnswer;
  readonly runs: GeminiAnswer;
  /** What the model was sent, in order: `call <id>`, `result <id>`, or a text. */
  readonly sent: (body: Any) => string[];
}

const WIRES: readonly Wire[] = [
  {
    provider: 'gemini',
    env: (url) => ({ GEMINI_API_KEY: 'x', GOOGLE_GEMINI_BASE_URL: url }),
    fine: { chunks: [chunk([{ text: 'fine' }], 'STOP')] },
    runs: { chunks: [chunk([{ functionCall: { id: 'call_2', name: 'run_shell_command', args: COMMAND } }], 'STOP')] },
    sent: ({ contents }) =>
      contents.flatMap(({ parts }: Any) =>
        parts.map(({ text, functionCall, functionResponse }: Any) =>
          functionCall ? `call ${functionCall.id}` : functionResponse ? `result ${functionResponse.id}` : text,
        ),
      ),
  },
  {
    provider: 'openai',
    env: (url) => ({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: url, OPENAI_MODEL: 'm' }),
    fine: openAiStream(delta({ content: 'fine' }, 'stop')),
    runs: openAiStream(
      delta({
        tool_calls: [
          {
            index: 0,
            id: 'call_2',
            type: 'function',
            function: { name: 'run_shell_command', arguments: JSON.stringify(COMMAND) },
          },
        ],
      }),
      delta({}, 'tool_calls'),
    ),
    sent: ({ messages }) =>
      messages.slice(1).flatMap(({ content, tool_calls: calls, tool_call_id: id }: Any) => {
        if (calls) return calls.map((call: Any) => `call ${call.id}`);
        return id ? [`result ${id}`] : texts(content);
      }),
  },
  {
    provider: 'anthropic',
    env: (url) => ({ ANTHROPIC_API_KEY: 'x', ANTHROPIC_BASE_URL: url, ANTHROPIC_MODEL: 'claude-test' }),
    fine: anthropicStream([{ type: 'text', text: 'fine' }]),
    runs: anthropicStream([{ type: 'tool_use', id: 'call_2', name: 'run_shell_command', input: COMMAND }], 'tool_use'),
    sent: ({ messages }) =>
      messages.flatMap(({ content }: Any) =>
        typeof content === 'string'
          ? [content]
          : content.map(({ text, id, tool_use_id: of }: Any) => (id ? `call ${id}` : of ? `result ${of}` : text)),
      ),
  },
];

const texts = (content: Any): string[] =>
  typeof content === 'string' ? [content] : content.map(({ text }: Any) => text);

test.each(WIRES)(
  '[TR-9, LS-6, BT-5, ACP-7, K006, K050] $provider is sent one result for each call, right behind it, when a person talks on past a question or cancels a command',
  async ({ env, fine, runs, sent }) => {
    const server = await startGeminiServer(fine, runs, fine);
    onTestFinished(() => server.close());
    const home = new Home();
    const peer = await Peer.start({ home, restore: true, script: null, env: env(server.url) });
    const last = () => sent(server.requests.at(-1)?.body);

    const asked = dangling(home, asks('call_0', COLOUR), asks('call_1', FEATURES));
    await peer.load(asked);
    expect((await peer.prompt(asked, 'never mind')).stopReason).toBe('end_turn');
    expect(last()).toEqual(['go', 'call call_0', 'call call_1', 'result call_0', 'result call_1', 'never mind']);

    const cwd = tempFolder();
    const id = await peer.newSession(cwd);
    await peer.request('session/set_mode', { sessionId: id, modeId: 'yolo' });
    const turn = peer.prompt(id, 'run it');
    await peer.until(() => JSON.stringify(peer.updates(id)).includes('started\\n'));
    await peer.notify('session/cancel', { sessionId: id });
    expect(await turn).toEqual({ stopReason: 'cancelled' });
    expect((await peer.prompt(id, 'and now?')).stopReason).toBe('end_turn');
    expect(last()).toEqual(['run it', 'call call_2', 'result call_2', 'and now?']);
    expect(server.requests).toHaveLength(3);
    expect(responseIds(home.records(asked))).toEqual(['call_0', 'call_1']);
  },
);
