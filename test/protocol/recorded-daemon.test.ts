import { expect, test } from 'vitest';
import { play } from '../support/player.ts';
import { type Seen, shapeOf } from '../support/recordings.ts';

/** The transcript was written in the test, too: its records have ids, numbered here as they come, and times of their own. */
function timeless(seen: readonly Seen[]): unknown {
  const ids: string[] = [];
  const text = JSON.stringify(seen)
    .replace(/"timestamp":\d+/g, '"timestamp":0')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (id) => {
      if (!ids.includes(id)) ids.push(id);
      return `id ${ids.indexOf(id)}`;
    });
  return JSON.parse(text);
}

test('[ACP-12, RS-4, ACP-11] under the recorded daemon: asked, killed, loaded in bulk, asked again, answered', async () => {
  const { recorded, ours, home, sessionId } = await play('h2-crash-load-vote.tap');
  expect(timeless(ours)).toEqual(timeless(recorded));
  const records = home.records(sessionId);
  expect(shapeOf(records).map(({ record }) => record)).toEqual([
    'user',
    'file_history_snapshot',
    'ui_telemetry',
    'assistant',
    'ui_telemetry',
    'tool_result',
    'ui_telemetry',
    'assistant',
    'turn_result',
  ]);
  expect(records[0].daemonPromptId).toBe('ba9e7c2a-b703-4bd4-b4cf-f54aad6a15f3');
  expect(records.at(-1).systemPayload).toMatchObject({
    promptId: '21885a79-60ee-4d7f-a769-3978d82a2f29',
    state: 'completed',
    stopReason: 'end_turn',
    promptText: '',
    resultText: expect.stringMatching(/\*\*Colour\*\*: Blue$/),
    originatorClientId: 'client_1e35e74c-deb9-4df3-bdef-933c628780e8',
  });
});

test('[ACP-12, RS-9] under the recorded daemon: a prompt that was queued runs after the answer', async () => {
  const { recorded, ours, home, sessionId } = await play('i9-prompt-while-restored.tap');
  expect(timeless(ours)).toEqual(timeless(recorded));
  const kinds = shapeOf(home.records(sessionId)).map(({ record }) => record);
  expect(kinds.slice(-7)).toEqual([
    'turn_result',
    'user',
    'file_history_snapshot',
    'ui_telemetry',
    'assistant',
    'branch_checkpoint',
    'turn_result',
  ]);
});

test('[BT-13] a daemon that could show forms is asked as recorded all the same', async () => {
  const { recorded, ours } = await play('h2-crash-load-vote.tap', undefined, { elicitation: { form: {} } });
  expect(timeless(ours)).toEqual(timeless(recorded));
});

test('[ACP-12, LS-2, LS-6] under the recorded daemon: suppressed without a client, a prompt goes on', async () => {
  const { recorded, ours } = await play('i10-smuggle.tap');
  expect(timeless(ours)).toEqual(timeless(recorded));
});

test('[ACP-12, ACP-7, RS-6] a cancel of the recorded daemon ends the prompt, which says when', async () => {
  const { recorded, ours } = await play('j5-branch.tap');
  const cancelled = { cancelledAt: expect.any(Number), elapsedMs: expect.any(Number) };
  for (const seen of [recorded, ours]) {
    expect(seen).toContainEqual({ answered: 'craft/cancelPendingPrompt', result: { cancelled: true } });
    expect(seen).toContainEqual({
      answered: 'session/prompt',
      result: { stopReason: 'cancelled', _meta: { 'qwen.promptCancelled': cancelled } },
    });
  }
});
