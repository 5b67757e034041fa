import { expect, onTestFinished, test } from 'vitest';
import { until } from './daemon.ts';
import { Place } from './place.ts';
import { ACP_FACTORY, OUR_CLI } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: a library without types here
type Json = any;

/** Our child as an agent of acp-factory. */
async function spawned(place: Place, options: object) {
  const { AgentFactory } = (await import(ACP_FACTORY)) as Json;
  const args = [OUR_CLI, '--acp', '--restore-ask-user-question'];
  AgentFactory.register('qwen-acp', { command: process.execPath, args });
  const agent = await AgentFactory.spawn('qwen-acp', { env: place.env, ...options });
  onTestFinished(() => agent.close());
  return agent;
}

async function updatesOf(turn: AsyncIterable<Json>, onUpdate: (update: Json) => void = () => {}): Promise<Json[]> {
  const updates: Json[] = [];
  for await (const update of turn) {
    updates.push(update);
    onUpdate(update);
  }
  return updates;
}

const textOf = (updates: readonly Json[]): string =>
  updates.map((update) => (update.sessionUpdate === 'agent_message_chunk' ? update.content.text : '')).join('');

test('[ACP-2, ACP-3, ACP-7, RS-5] acp-factory: prompts, an answered question, modes, cancel and load', async () => {
  const place = await Place.make();
  const asked: string[] = [];
  const agent = await spawned(place, {
    permissionMode: 'callback',
    onPermissionRequest: async ({ options, toolCall }: Json) => {
      asked.push(toolCall.title);
      return { outcome: { outcome: 'selected', optionId: options[0].optionId }, answers: { '0': 'Blue' } };
    },
  });
  expect(agent.capabilities).toMatchObject({ loadSession: true });
  const session = await agent.createSession(place.cwd);
  expect(session.modes.length).toBeGreaterThan(1);
  expect(textOf(await updatesOf(session.prompt('hi')))).toContain('PLAIN REPLY');
  expect(textOf(await updatesOf(session.prompt('[[ask]] which')))).toContain('Blue');
  expect(asked).toEqual(['Ask user 1 question']);
  await session.setMode('plan');
  const cancelled = await updatesOf(session.prompt('[[sleep]]'), (update) => {
    if (update.content?.text === 'SLEEPING') session.cancel();
  });
  expect(textOf(cancelled)).toContain('SLEEPING');

  const loaded = await agent.loadSession(session.id, place.cwd);
  expect(textOf(await updatesOf(loaded.prompt('and then')))).toContain('PLAIN REPLY');
  await agent.close();
  await until(() => place.processes().length === 0);
});

test('[RS-5, RS-7] acp-factory: approving without an answer and denying both close the question', async () => {
  const place = await Place.make();
  for (const permissionMode of ['auto-approve', 'auto-deny']) {
    const agent = await spawned(place, { permissionMode });
    const session = await agent.createSession(place.cwd);
    const updates = await updatesOf(session.prompt('[[ask]] which'));
    expect(updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call_update')?.status).toBe('failed');
    expect(textOf(await updatesOf(session.prompt('and then')))).not.toBe('');
    await agent.close();
  }
  await until(() => place.processes().length === 0);
});
