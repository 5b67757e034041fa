import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { submit } from '../support/peer.ts';
import { load, newSession, startAgent } from './agent.ts';
import { Place } from './place.ts';
import { OUR_CLI, SDK_FIRST, SDK_FIRST_OF_NAME } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: what an old client gets, whose types are not ours
type Json = any;

/** A client of an old SDK on the pipes of our child, which answers every question with "Blue". */
async function oldClient(sdk: string, place: Place) {
  const acp: Json = await import(sdk);
  const child = spawn(process.execPath, [OUR_CLI, '--acp', '--restore-ask-user-question'], { env: place.env });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const seen: string[] = [];
  const handler = {
    async sessionUpdate({ update }: Json) {
      seen.push(`${update.sessionUpdate} ${update.status ?? ''}`.trim());
    },
    async requestPermission({ options, toolCall }: Json) {
      seen.push(`question ${toolCall.title}`);
      return { outcome: { outcome: 'selected', optionId: options[0].optionId }, answers: { '0': 'Blue' } };
    },
  };
  const [input, output] = [Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)];
  // The first ones took the two streams, later ones a stream of messages.
  const pipes = acp.ndJsonStream ? [acp.ndJsonStream(input, output)] : [input, output];
  return { acp, child, seen, connection: new acp.ClientSideConnection(() => handler, ...pipes) };
}

describe.each([
  ['0.1.2 of its first name', SDK_FIRST],
  ['0.4.5, the first of its name', SDK_FIRST_OF_NAME],
])("the ACP SDK's client %s", (_, sdk) => {
  test('[ACP-1, ACP-2, ACP-3, RS-3] opens a session, answers, cancels, and loads it again', async () => {
    const place = await Place.make();
    const { acp, child, seen, connection } = await oldClient(sdk, place);
    const capabilities = { fs: { readTextFile: false, writeTextFile: false } };
    const params = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: capabilities };
    expect(await connection.initialize(params)).toMatchObject({
      protocolVersion: 1,
      agentCapabilities: { loadSession: true },
    });
    const folder = { cwd: place.cwd, mcpServers: [] };
    const { sessionId } = await connection.newSession(folder);
    const prompt = (text: string) => connection.prompt({ sessionId, prompt: [{ type: 'text', text }] });
    expect(await prompt('[[ask]] which')).toMatchObject({ stopReason: 'end_turn' });
    expect(seen).toContain('question Ask user 1 question');
    expect(seen).toContain('tool_call_update completed');
    expect(place.model.asked.at(-1)?.responses[0]).toContain('Blue');

    const running = prompt('[[sleep]]');
    await expect.poll(() => place.model.asked.at(-1)?.text, { timeout: 20_000 }).toContain('[[sleep]]');
    await connection.cancel({ sessionId });
    expect(await running).toMatchObject({ stopReason: 'cancelled' });

    const live = seen.splice(0).filter((update) => /^tool_call_update/.test(update));
    await connection.loadSession({ sessionId, ...folder });
    expect(seen.filter((update) => /^tool_call_update/.test(update))).toEqual(live);
    await expect(connection.loadSession({ ...folder, sessionId: 'nowhere' })).rejects.toMatchObject({ code: -32002 });
    child.stdin.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

test("[ACP-1, ACP-2, ACP-3, RS-4] the ACP SDK's client 2.4 does the same, and has a question asked again", async () => {
  const place = await Place.make();
  const peer = await startAgent('ours', place);
  const sessionId = await newSession(peer, place);
  const { asked } = await peer.askIn(sessionId, '[[ask]] which');
  await peer.kill();
  const next = await startAgent('ours', place);
  const { updates } = await load(next, place, sessionId);
  expect(updates.at(-1)).toMatchObject({ sessionUpdate: 'tool_call', status: 'in_progress' });
  const turn = next.restore(sessionId);
  const again = await next.question();
  expect(again.id).not.toBe(asked.id);
  again.answer(submit({ '0': 'Blue' }));
  expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  expect(place.model.asked.at(-1)?.responses[0]).toContain('Blue');
  const { sessions } = await next.request('session/list', { cwd: place.cwd });
  expect(sessions).toEqual([expect.objectContaining({ sessionId })]);
  expect(await next.eof()).toEqual({ code: 0, signal: null });
});
