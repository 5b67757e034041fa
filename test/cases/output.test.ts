import { expect, test } from 'vitest';
import { call, RawChild } from '../support/raw-child.ts';
import { tempFolder } from '../support/temp.ts';

/** What a program says that does not know where it is: a banner, a title for the terminal, half a message, no line feed. */
const NOISE = String.raw`printf 'Welcome!\n\033]0;title\007\n{"jsonrpc":"2.0","id":1,"res\nno end'; printf 'heard\n' >&2`;

test('[CLI-4, TL-1, TL-2, K081] what commands and MCP servers print is no part of what the child says', async () => {
  const script = {
    rules: [
      { when: { response: true }, steps: [{ text: 'done: {{response}}' }] },
      { steps: [{ call: 'run_shell_command', args: { command: NOISE } }] },
    ],
  };
  const child = new RawChild({ script });
  const server = (name: string, then: string) => ({
    name,
    command: '/bin/sh',
    args: ['-c', `${NOISE}; ${then}`],
    env: [],
  });
  const mcpServers = [server('ends', 'exit 1'), server('ends later', 'read -r line; echo bye')];
  const { result } = await child.call('new', 'session/new', { cwd: tempFolder(), mcpServers });
  const { sessionId } = result;
  await child.call('mode', 'session/set_mode', { sessionId, modeId: 'yolo' });
  child.send(call('turn', 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'run it' }] }));
  const frames = await child.until('turn');
  expect(frames.at(-1).result.stopReason).toBe('end_turn');
  const said = frames.flatMap(({ params }) => params?.update?.content?.text ?? []).join('');
  expect(said).toContain('Welcome!');
  child.child.stdin.end();
  expect((await child.exited).code).toBe(0);
  expect(child.noise).toEqual([]);
});
