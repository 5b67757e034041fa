import { describe, expect, test } from 'vitest';
import { MixedDaemon, until } from './daemon.ts';
import { Place } from './place.ts';
import type { Whose } from './programs.ts';

const BLUE = { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { '0': 'Blue' } };
const UNKNOWN = '11111111-1111-4111-8111-111111111111';

const PAIRS = [
  ["our child under the reference's daemon", 'reference', 'ours'],
  ["the reference's child under our daemon", 'ours', 'reference'],
] as const satisfies readonly (readonly [string, Whose, Whose])[];

describe.each(PAIRS)('%s', (_, whose, child) => {
  test('[DM-13, ACP-12] a question outlives the child, then daemon and child, and the answer ends the turn', async () => {
    const place = await Place.make('openai');
    const first = await MixedDaemon.start(whose, child, place);
    const asked = await first.ask();
    const { sessionId } = asked;
    first.killChild();
    await asked.events.ended;
    expect(asked.events.seen.at(-1)).toMatchObject({ type: 'session_died' });

    const loaded = await first.load(sessionId, 'me');
    expect(loaded).toMatchObject({ status: 200, body: { attached: false, hasActivePrompt: true } });
    const second = await (await first.events(sessionId, loaded.body.lastEventId)).next('permission_request');
    await first.end('SIGKILL');

    const last = await MixedDaemon.start(whose, child, place);
    expect((await last.get(`/session/${sessionId}/status`)).status).toBe(404);
    const again = await last.load(sessionId, 'me');
    expect(again).toMatchObject({ status: 200, body: { attached: false, hasActivePrompt: true } });
    const events = await last.events(sessionId, again.body.lastEventId);
    const third = await events.next('permission_request');
    expect(new Set([asked.requestId, second.data.requestId, third.data.requestId]).size).toBe(3);
    expect((await last.get(`/session/${sessionId}/status`)).body).toMatchObject({
      isWaitingForUserQuestion: true,
      pendingInteractions: [{ requestId: third.data.requestId, questions: [{ answerKey: '0' }] }],
    });
    // Whoever loads meanwhile sees the same question.
    expect(await last.load(sessionId, 'you')).toMatchObject({ body: { attached: true, hasActivePrompt: true } });
    // A prompt that comes meanwhile waits for the answer.
    expect((await last.prompt(sessionId, 'and then', again.body.clientId)).status).toBe(202);
    const vote = `/session/${sessionId}/permission/${third.data.requestId}`;
    expect(await last.post(vote, BLUE, again.body.clientId)).toMatchObject({ status: 200, body: {} });
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
    expect(await last.post(vote, BLUE, again.body.clientId)).toMatchObject({ status: 404 });
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
    expect((await last.get(`/session/${sessionId}/status`)).body).toMatchObject({ hasActivePrompt: false });
    const told = place.model.asked.flatMap(({ responses }) => responses);
    expect(told).toEqual([expect.stringContaining('Blue')]);
    const responses = place.records(sessionId).filter(({ type }) => type === 'tool_result');
    expect(responses.map(({ toolCallResult }) => toolCallResult.status)).toEqual(['success']);
    expect(responses[0].message.parts[0].functionResponse.response).toHaveProperty('output');
    await last.end('SIGTERM');
    expect(complaints(last, whose)).toEqual([]);
  });

  test('[DM-13, ACP-12] sessions are opened, cancelled, branched, continued, closed and loaded again', async () => {
    const place = await Place.make('openai');
    const daemon = await MixedDaemon.start(whose, child, place);
    const { sessionId, clientId, events } = await daemon.open();
    await daemon.prompt(sessionId, 'hi', clientId);
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
    await statusRoutes(daemon, whose, sessionId);

    for (const path of ['load', 'resume', 'prompt', 'cancel', 'branch']) {
      const body = path === 'prompt' ? { prompt: [{ type: 'text', text: 'hi' }] } : {};
      const answer = await daemon.post(`/session/${UNKNOWN}/${path}`, body, 'me');
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'session_not_found']);
    }

    await daemon.prompt(sessionId, '[[sleep]]', clientId);
    await events.until(({ data }) => data.update?.content?.text === 'SLEEPING');
    expect((await daemon.post(`/session/${sessionId}/branch`, { name: 'x' }, clientId)).status).toBe(409);
    expect((await daemon.post(`/session/${sessionId}/cancel`, {}, clientId)).status).toBe(204);
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'cancelled' });
    expect((await daemon.post(`/session/${sessionId}/continue`, {}, clientId)).body).toMatchObject({ accepted: false });

    await daemon.prompt(sessionId, '[[ask]] which', clientId);
    await events.next('permission_request');
    expect((await daemon.post(`/session/${sessionId}/cancel`, {}, clientId)).status).toBe(204);
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'cancelled' });
    expect((await daemon.load(sessionId, clientId)).body).toMatchObject({ attached: true, hasActivePrompt: false });

    const fork = await daemon.post(`/session/${sessionId}/branch`, { name: 'fork' }, clientId);
    expect(fork).toMatchObject({ status: 201, body: { hasActivePrompt: false } });
    expect(fork.body.sessionId).not.toBe(sessionId);

    expect((await daemon.request('DELETE', `/session/${sessionId}`, undefined, clientId)).status).toBe(204);
    await events.ended;
    expect((await daemon.get(`/session/${sessionId}/status`)).status).toBe(404);
    const loaded = await daemon.load(sessionId, 'me');
    expect(loaded).toMatchObject({ status: 200, body: { attached: false, hasActivePrompt: false } });
    const replayed = JSON.stringify(loaded.body.compactedReplay);
    expect(replayed).toContain('PLAIN REPLY');
    expect((await daemon.load(fork.body.sessionId, 'me')).status).toBe(200);
    const list = await daemon.get(`/workspace/${encodeURIComponent(place.cwd)}/sessions`);
    const listed = list.body.sessions.map((session: { sessionId: string }) => session.sessionId);
    expect(listed).toEqual(expect.arrayContaining([sessionId, fork.body.sessionId]));

    await pinged(daemon);
    expect((await daemon.get(`/session/${sessionId}/status`)).status).toBe(200);
    await daemon.end('SIGTERM');
    expect(complaints(daemon, whose)).toEqual([]);
  });

  test('[DM-13, BT-1, DM-11] a question that was asked again outlives a clean stop', async () => {
    const place = await Place.make('openai');
    const first = await MixedDaemon.start(whose, child, place);
    const { sessionId } = await first.ask();
    // The reference's child keeps a question that is asked for the first time over a crash only.
    await first.end('SIGKILL');
    const second = await MixedDaemon.start(whose, child, place);
    expect((await second.load(sessionId, 'me')).body).toMatchObject({ hasActivePrompt: true });
    await (await second.events(sessionId, 0)).next('permission_request');
    const before = place.text(sessionId);
    await second.end('SIGTERM');
    expect(place.text(sessionId).startsWith(before)).toBe(true);
    const third = await MixedDaemon.start(whose, child, place);
    // Without a client there is nobody to ask; with one there is.
    expect((await third.load(sessionId)).body).toMatchObject({ hasActivePrompt: false });
    await third.end('SIGKILL');
    const fourth = await MixedDaemon.start(whose, child, place);
    const loaded = await fourth.load(sessionId, 'me');
    expect(loaded.body).toMatchObject({ hasActivePrompt: true });
    const events = await fourth.events(sessionId, loaded.body.lastEventId);
    const { data } = await events.next('permission_request');
    const decline = { outcome: { outcome: 'cancelled' } };
    await fourth.post(`/session/${sessionId}/permission/${data.requestId}`, decline, loaded.body.clientId);
    expect((await events.next('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
    const results = place.records(sessionId).filter(({ type }) => type === 'tool_result');
    expect(results.map(({ toolCallResult }) => toolCallResult.status)).toEqual(['cancelled']);
  });
});

/** The routes that show a live session; most of them the daemon asks the child for. */
async function statusRoutes(daemon: MixedDaemon, whose: Whose, sessionId: string): Promise<void> {
  const common = ['status', 'transcript'].map((name) => `/session/${sessionId}/${name}`);
  const own = [
    'context',
    'context-usage',
    'context-usage?detail=true',
    'stats',
    'supported-commands',
    'tasks',
    'agents',
    'goal',
    'artifacts',
  ];
  const paths = [
    '/health',
    '/capabilities',
    '/daemon/status',
    ...common,
    ...(whose === 'ours' ? [] : own.map((name) => `/session/${sessionId}/${name}`)),
    ...(whose === 'ours' ? [] : ['/workspace/skills', '/workspace/mcp', '/workspace/acp/status']),
  ];
  const answers: string[] = [];
  for (const path of paths) {
    const { status, body } = await daemon.get(path);
    if (status !== 200) answers.push(`${path} ${status} ${JSON.stringify(body)}`);
  }
  expect(answers).toEqual([]);
}

/** Waits until the child has answered the daemon's ping. */
async function pinged(daemon: MixedDaemon): Promise<void> {
  await until(() => {
    const frames = daemon.frames();
    const ping = frames.find(({ frame }) => frame?.method === 'qwen/status/channel/ping')?.frame;
    const { nonce } = ping?.params ?? {};
    return frames.some(
      ({ dir, frame }) => dir === 'from-child' && frame.id === ping?.id && frame.result?.nonce === nonce,
    );
  });
}

/** What the test itself provokes. */
const PROVOKED = [
  /status=40[49] /,
  /received SIGTERM, draining/,
  /agent channel closed mid-request/,
  /"the agent process is gone with 1 session\(s\)/,
];

/** Lines of a daemon's log that complain of its child or say what the child wrote on stderr. */
function complaints(daemon: MixedDaemon, whose: Whose): string[] {
  const lines = daemon.stderr.split('\n').filter((line) => !PROVOKED.some((pattern) => pattern.test(line)));
  if (whose === 'ours') return lines.filter((line) => line !== '' && !line.startsWith('[serve pid='));
  return lines.filter((line) => /\[(WARN|ERROR)\]|^\[serve pid=|[Ii]nvalid|malformed|[Ff]ailed/.test(line));
}
