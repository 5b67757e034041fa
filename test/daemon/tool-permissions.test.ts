import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Daemon } from '../support/daemon.ts';
import { DECLINE, submit } from '../support/peer.ts';
import { callScript, distWithTestTools } from '../support/tool-child.ts';

const cli = distWithTestTools();
const touch = (file: string) => ({ call: 'run_shell_command', args: { command: `touch ${file}` } });

test('[TL-1, DM-2, BT-12] a tool asks for permission through the daemon, and a vote needs no answers', async () => {
  const script = callScript({
    two: [touch('one.txt'), touch('two.txt')],
    three: [touch('three.txt')],
    rm: [{ call: 'wait' }],
  });
  const daemon = await Daemon.start({ script, env: { QWEN_CLI_ENTRY: cli } });
  const { cwd } = daemon.place;
  const { sessionId, clientId, requestId, events } = await daemon.ask('[[two]]');
  const { body: status } = await daemon.get(`/session/${sessionId}/status`);
  expect(status).toMatchObject({
    isWaitingForPermission: true,
    isWaitingForUserQuestion: false,
    pendingInteractionCount: 1,
    pendingInteractions: [
      {
        requestId,
        kind: 'permission',
        title: 'Shell: touch one.txt',
        options: [
          { optionId: 'proceed_always', label: 'Always allow touch commands', kind: 'allow_always' },
          { optionId: 'proceed_once', label: 'Allow', kind: 'allow_once' },
          { optionId: 'cancel', label: 'Reject', kind: 'reject_once' },
        ],
      },
    ],
  });
  const vote = (id: string, body: unknown) => daemon.post(`/session/${sessionId}/permission/${id}`, body, clientId);
  const wrong = { outcome: { outcome: 'selected', optionId: 'proceed_forever' } };
  expect(await vote(requestId, wrong)).toMatchObject({ status: 400, body: { code: 'invalid_option_id' } });
  const always = { outcome: { outcome: 'selected', optionId: 'proceed_always' } };
  expect(await vote(requestId, always)).toMatchObject({ status: 200, body: {} });
  expect(await events.next('turn_complete')).toMatchObject({ data: { stopReason: 'end_turn' } });
  expect(events.seen.filter(({ type }) => type === 'permission_request')).toHaveLength(1);
  expect([existsSync(join(cwd, 'one.txt')), existsSync(join(cwd, 'two.txt'))]).toEqual([true, true]);

  const say = (text: string) =>
    daemon.post(`/session/${sessionId}/prompt`, { prompt: [{ type: 'text', text }] }, clientId);
  await say('[[rm]]');
  const second = await events.next('permission_request');
  expect(await vote(second.data.requestId, DECLINE)).toMatchObject({ status: 200 });
  await events.next('turn_complete');
  const results = daemon.records(sessionId).flatMap(({ toolCallResult }) => toolCallResult?.status ?? []);
  expect(results).toEqual(['success', 'success', 'cancelled']);

  const other = await daemon.ask('[[three]]');
  const once = daemon.post(
    `/session/${other.sessionId}/permission/${other.requestId}`,
    submit(undefined),
    other.clientId,
  );
  expect(await once).toMatchObject({ status: 200 });
  await other.events.next('turn_complete');
  expect(existsSync(join(cwd, 'three.txt'))).toBe(true);
});
