import { expect, test } from 'vitest';
import { Daemon, daemonPlace } from '../support/daemon.ts';
import { COLOUR, PARTS } from '../support/questions.ts';

const answer = (text: string) => ({
  outcome: { outcome: 'selected', optionId: 'proceed_once' },
  answers: { '0': text },
});
const CANCELLED = { outcome: { outcome: 'cancelled' } };
const asks = (question: object) => ({ call: 'ask_user_question', args: { questions: [question] } });
const TWO_CALLS = {
  rules: [
    { when: { response: 'ask_user_question' }, steps: [{ text: 'So be it: {{response}}' }] },
    { steps: [asks(COLOUR), asks(PARTS)] },
  ],
};

/** A session with three clients attached that asks. */
async function askThree(daemon: Daemon) {
  const first = (await daemon.post('/session', { sessionScope: 'thread' })).body;
  const { sessionId } = first;
  const attach = async () => (await daemon.post(`/session/${sessionId}/load`, {})).body.clientId as string;
  const clients = [first.clientId as string, await attach(), await attach()] as const;
  const events = await daemon.events(sessionId);
  await daemon.post(`/session/${sessionId}/prompt`, { prompt: [{ type: 'text', text: '[[ask1]]' }] }, clients[0]);
  const { requestId } = (await events.next('permission_request')).data;
  const vote = (body: object, clientId?: string) =>
    daemon.post(`/session/${sessionId}/permission/${requestId}`, body, clientId);
  return { sessionId, requestId, clients, events, vote };
}

/** What the session's calls were answered with, as it is on disk. */
const responses = (daemon: Daemon, sessionId: string): string[] =>
  daemon
    .records(sessionId)
    .flatMap(({ type, message }) => (type === 'tool_result' ? [JSON.stringify(message.parts)] : []));

test('[DM-7, BT-3] consensus over HTTP: votes short of the quorum are 200 and announced, and two who agree decide', async () => {
  const daemon = await Daemon.start({ args: ['--permission-strategy', 'consensus'] });
  const { sessionId, requestId, clients, events, vote } = await askThree(daemon);
  const [alice, bob, carol] = clients;
  expect(await vote(answer('Red'), alice)).toMatchObject({ status: 200, body: {} });
  expect((await events.next('permission_partial_vote')).data).toEqual({
    requestId,
    sessionId,
    votesReceived: 1,
    votesNeeded: 1,
    quorum: 2,
    optionTallies: { proceed_once: 1 },
  });
  expect(await vote(answer('Blue'), bob)).toMatchObject({ status: 200 });
  expect(await vote(answer('Green'))).toMatchObject({
    status: 403,
    body: { code: 'permission_forbidden', reason: 'designated_mismatch', requestId, sessionId },
  });
  expect(await vote(answer('Blue'), carol)).toMatchObject({ status: 200 });
  expect((await events.next('permission_resolved')).data).toMatchObject({ requestId, voterClientId: carol });
  await events.next('turn_complete');
  expect(responses(daemon, sessionId)).toEqual([expect.stringContaining('Blue')]);
  expect(events.text).not.toContain('Green');
});

test('[DM-7] designated over HTTP: the originator alone answers, anybody cancels', async () => {
  const daemon = await Daemon.start({ args: ['--permission-strategy', 'designated'] });
  const { events, vote, clients } = await askThree(daemon);
  const refused = { status: 403, body: { code: 'permission_forbidden', reason: 'designated_mismatch' } };
  expect(await vote(answer('Red'), clients[1])).toMatchObject(refused);
  expect(await vote(answer('Red'))).toMatchObject(refused);
  expect(await vote(answer('Red'), clients[0])).toMatchObject({ status: 200 });
  await events.next('turn_complete');
  const other = await askThree(daemon);
  expect(await other.vote(CANCELLED, other.clients[2])).toMatchObject({ status: 200 });
  expect((await other.events.next('permission_resolved')).data).toMatchObject({ reason: 'declined' });
});

test('[DM-7] of a question that is asked again the loading client is the originator', async () => {
  const place = daemonPlace();
  const args = ['--permission-strategy', 'designated'];
  const before = await Daemon.start({ place, args });
  const { sessionId } = await before.ask();
  await before.kill();
  const daemon = await Daemon.start({ place, args });
  const loading = (await daemon.post(`/session/${sessionId}/load`, {}, 'me')).body.clientId;
  const events = await daemon.events(sessionId);
  const second = (await daemon.post(`/session/${sessionId}/load`, {}, 'you')).body.clientId;
  const { requestId } = (await events.next('permission_request')).data;
  const vote = (clientId: string) =>
    daemon.post(`/session/${sessionId}/permission/${requestId}`, answer('Blue'), clientId);
  expect(await vote(second)).toMatchObject({ status: 403 });
  expect(await vote(loading)).toMatchObject({ status: 200 });
  await events.next('turn_complete');
});

test('[BT-4, BT-1] of two questions the answered one is not asked again after a stop, until a person cancels the turn', async () => {
  const place = daemonPlace();
  const start = { place, script: TWO_CALLS };
  const first = await Daemon.start(start);
  const { sessionId, requestId, events } = await first.ask('go');
  expect(await first.post(`/permission/${requestId}`, answer('Blue'))).toMatchObject({ status: 200 });
  expect((await events.next('permission_request')).data.toolCall.rawInput.questions).toEqual([PARTS]);
  expect(await first.kill('SIGTERM')).toEqual({ code: 0, signal: null });

  const second = await Daemon.start(start);
  const asked = async (daemon: Daemon) => {
    const { clientId } = (await daemon.post(`/session/${sessionId}/load`, {}, 'me')).body;
    const reader = await daemon.events(sessionId);
    const { data } = await reader.next('permission_request');
    return { clientId, reader, requestId: data.requestId, questions: data.toolCall.rawInput.questions };
  };
  const again = await asked(second);
  expect(again.questions).toEqual([PARTS]);
  expect(await second.post(`/session/${sessionId}/cancel`, undefined, again.clientId)).toMatchObject({ status: 204 });
  await again.reader.next('turn_complete');
  await second.kill();

  const third = await Daemon.start(start);
  const anew = await asked(third);
  expect(anew.questions).toEqual([COLOUR]);
  await third.post(`/permission/${anew.requestId}`, answer('Red'));
  const rest = await anew.reader.next('permission_request');
  await third.post(`/permission/${rest.data.requestId}`, answer('Alpha'));
  expect((await anew.reader.next('turn_complete')).data.stopReason).toBe('end_turn');
  expect(responses(third, sessionId)).toEqual([expect.stringContaining('Red'), expect.stringContaining('Alpha')]);
});
