import { expect, test } from 'vitest';
import type { DaemonEvent } from '../../src/daemon/ports.ts';
import { as, ASK, BLUE, Listener, Place, TEXT } from '../support/bridge.ts';

const idle = (id: string) =>
  expect.objectContaining({ sessionId: id, hasActivePrompt: false, pendingInteractions: [] });

test('[DM-1, DM-2, DM-9] a prompt with a question goes over the events as recorded, and the vote ends it', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId, attached } = await bridge.createSession({ cwd: place.cwd }, as());
  expect(attached).toBe(false);
  const listener = await Listener.of(bridge, sessionId);
  const admitted = await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  const asked = await listener.event('permission_request');
  expect(asked.promptId).toBe(admitted.promptId);
  expect(asked.originatorClientId).toBe(clientId);
  expect(await bridge.status(sessionId)).toMatchObject({
    clientCount: 1,
    hasActivePrompt: true,
    activeWorkState: 'active',
    isWaitingForPermission: false,
    isWaitingForUserQuestion: true,
    pendingInteractionCount: 1,
    pendingInteractions: [
      {
        requestId: asked.data.requestId,
        kind: 'user_question',
        questions: [{ header: 'Colour', answerKey: '0' }],
        options: [
          { optionId: 'proceed_once', kind: 'allow_once', label: expect.any(String) },
          { optionId: 'cancel', kind: 'reject_once', label: expect.any(String) },
        ],
      },
    ],
  });
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as(clientId));
  const done = await listener.event('turn_complete');
  expect(done.data).toMatchObject({ sessionId, stopReason: 'end_turn', promptId: admitted.promptId, branchPoint: {} });
  expect(listener.types()).toEqual([
    'session_update user_message_chunk',
    'session_update tool_call',
    'session_update agent_message_chunk',
    'permission_request',
    'permission_resolved',
    'session_update tool_call_update',
    'session_update agent_message_chunk',
    'session_update agent_message_chunk',
    'turn_complete',
  ]);
  expect(listener.events.map(({ id }) => id)).toEqual(listener.events.map((_, at) => admitted.lastEventId + 1 + at));
  expect(await bridge.status(sessionId)).toEqual(idle(sessionId));
});

test('[DM-3, DM-4, DM-10] after its death the child is started anew, and a load with a client asks again', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const before = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  const first = await before.event('permission_request');
  place.killChild();
  await before.over;
  expect(before.types().slice(-3)).toEqual(['permission_resolved', 'turn_error', 'session_died']);
  await expect(bridge.status(sessionId)).rejects.toMatchObject({ status: 404, code: 'session_not_found' });

  const loaded = await bridge.load(sessionId, { cwd: place.cwd }, as('any-token'));
  expect(loaded).toMatchObject({ attached: false, hasActivePrompt: true, liveJournal: [] });
  expect(JSON.stringify(loaded)).not.toContain('restoreAskUserQuestion');
  expect(place.sent('session/load')[0].params._meta).toEqual({ 'qwen.session.loadReplayMode': 'bulk' });
  const after = await Listener.of(bridge, sessionId, { lastEventId: loaded['lastEventId'] as number });
  const second = await after.event('permission_request');
  const [prompt] = place.sent('session/prompt');
  expect(prompt.params).toMatchObject({
    prompt: [],
    _meta: {
      'qwen.daemon.restoreAskUserQuestion': true,
      'qwen-code/invocation': { version: 1, sessionId, originatorClientId: loaded['clientId'] },
    },
  });
  expect(second.data.requestId).not.toBe(first.data.requestId);
  expect(second.data.toolCall.toolCallId).toBe(first.data.toolCall.toolCallId);
  await bridge.vote(undefined, second.data.requestId, BLUE, as());
  const done = await after.event('turn_complete');
  expect(done.data).toEqual({ sessionId, stopReason: 'end_turn', promptId: second.promptId });
});

test('[DM-4, BT-10] a load without a client asks nothing and says so to the child; a later one with a client asks', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const first = await bridge.load(sessionId, {}, as());
  expect(first).toMatchObject({ attached: false, hasActivePrompt: false });
  expect(place.sent('session/load')[0].params._meta).toMatchObject({
    'qwen.daemon.suppressRestoreAskUserQuestion': true,
  });
  expect(await bridge.status(sessionId)).toEqual(idle(sessionId));
  const second = await bridge.resume(sessionId, {}, as('late'));
  expect(second).toMatchObject({ attached: true, hasActivePrompt: true });
  expect(second).not.toHaveProperty('compactedReplay');
  const listener = await Listener.of(bridge, sessionId);
  expect((await listener.event('permission_request')).data.sessionId).toBe(sessionId);
});

test('[DM-4] with its switch off the daemon sends neither key', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge({ restoreAskUserQuestion: false });
  for (const caller of [as(), as('me')]) {
    expect(await bridge.load(sessionId, {}, caller)).toMatchObject({ hasActivePrompt: false });
    expect(await bridge.resume(sessionId, {}, caller)).toMatchObject({ hasActivePrompt: false });
  }
  expect(JSON.stringify(place.frames().map(({ frame }) => frame?.params?._meta))).not.toContain('AskUserQuestion');
  expect(place.frames()[0]?.argv).not.toContain('--restore-ask-user-question');
});

test('[DM-3, DM-7] loads at the same time reach the child once and see the same request', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const loads = await Promise.all(['a', 'b', 'c'].map((id) => bridge.load(sessionId, {}, as(id))));
  expect(loads.map(({ attached }) => attached)).toEqual([false, true, true]);
  expect(new Set(loads.map(({ clientId }) => clientId)).size).toBe(3);
  for (const load of loads) expect(load).toMatchObject({ hasActivePrompt: true, compactedReplay: [{}, {}, {}] });
  await (await Listener.of(bridge, sessionId)).event('permission_request');
  expect(place.sent('session/load')).toHaveLength(1);
  expect(place.sent('session/prompt')).toHaveLength(1);
  const later = await bridge.load(sessionId, {}, as('d'));
  expect(later).toMatchObject({ attached: true, hasActivePrompt: true });
  const journal = (later['liveJournal'] as DaemonEvent[]).filter(({ type }) => type !== 'session_update');
  expect(journal).toMatchObject([{ type: 'permission_request' }]);
  expect(place.sent('session/load')).toHaveLength(1);
  expect(await bridge.status(sessionId)).toMatchObject({ clientCount: 4, pendingInteractionCount: 1 });
});

test('[DM-3, K009] of two loads at once, one with a client and one without, each gets its own', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const [without, withClient, resumed] = await Promise.all([
    bridge.load(sessionId, {}, as()),
    bridge.load(sessionId, {}, as('me')),
    bridge.resume(sessionId, {}, as('you')),
  ]);
  expect(without).toMatchObject({ attached: false, hasActivePrompt: false });
  expect(withClient).toMatchObject({ attached: true, hasActivePrompt: true });
  expect(resumed).toMatchObject({ attached: true, hasActivePrompt: true });
  await (await Listener.of(bridge, sessionId)).event('permission_request');
  expect(place.sent('session/prompt')).toHaveLength(1);
});

test('[DM-9, BT-11, K091] who subscribes late sees what waits; a number goes on from there; a snapshot tells the settings', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { lastEventId } = (await bridge.load(sessionId, {}, as('me'))) as { lastEventId: number };
  const waiting = await (await Listener.of(bridge, sessionId)).event('permission_request');
  const late = await Listener.of(bridge, sessionId);
  const seen = await late.event('permission_request');
  expect(seen.data).toEqual(waiting.data);
  const replayed = await Listener.of(bridge, sessionId, { lastEventId });
  const complete = await replayed.event('replay_complete');
  expect(replayed.types()).toEqual(['permission_request', 'replay_complete']);
  const last = (await replayed.event('permission_request')).id as number;
  expect(last).toBeGreaterThan(lastEventId);
  expect(complete.data).toEqual({
    lastReplayedEventId: last,
    lastEventId: last,
    replayedCount: last - lastEventId,
  });
  const snapshot = await Listener.of(bridge, sessionId, { snapshot: true });
  expect((await snapshot.event('session_snapshot')).data).toMatchObject({ sessionId, recordingDegraded: false });
});

test('[DM-1, RS-9] a prompt waits behind a question that is asked again, and runs after it', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { clientId } = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string };
  const listener = await Listener.of(bridge, sessionId);
  const asked = await listener.event('permission_request');
  const from = listener.events.length;
  const { promptId } = await bridge.prompt(sessionId, TEXT('other [[plain]]'), undefined, as(clientId));
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as(clientId));
  const ended = await listener.event('pending_prompt_completed');
  expect(ended.data).toEqual({ sessionId, promptId, state: 'completed' });
  expect(listener.types(from)).toEqual([
    'pending_prompt_added',
    'permission_resolved',
    'session_update tool_call_update',
    'session_update agent_message_chunk',
    'session_update agent_message_chunk',
    'turn_complete',
    'pending_prompt_started',
    'session_update user_message_chunk',
    'session_update agent_message_chunk',
    'session_update agent_message_chunk',
    'turn_complete',
    'pending_prompt_completed',
  ]);
  const drained = place.frames().filter(({ dir, frame }) => dir === 'to-child' && frame.result?.messages);
  expect(drained.map(({ frame }) => frame.result)).toEqual([{ messages: [], items: [], hasQueuedPrompt: true }]);
});

test('[DM-12] a session holds five prompts; the sixth is refused and the others run in order', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  const prompts = [ASK, ...[1, 2, 3, 4].map((number) => TEXT(`number ${number}`))];
  const admitted = await Promise.all(
    prompts.map((prompt) => bridge.prompt(sessionId, prompt, undefined, as(clientId))),
  );
  await expect(bridge.prompt(sessionId, TEXT('sixth'), undefined, as(clientId))).rejects.toMatchObject({
    status: 503,
    code: 'prompt_queue_full',
    retryAfter: expect.any(Number),
  });
  const asked = await listener.event('permission_request');
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as(clientId));
  const completed: string[] = [];
  for (let from = 0; completed.length < 5; ) {
    const event = await listener.event('turn_complete', from);
    completed.push(event.data.promptId);
    from = listener.events.indexOf(event) + 1;
  }
  expect(completed).toEqual(admitted.map(({ promptId }) => promptId));
});

test("[DM-5] of a caller's _meta only the trace context reaches the child", async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  const smuggled = {
    'qwen.daemon.restoreAskUserQuestion': true,
    'qwen.daemon.continueLastTurn': true,
    'qwen-code/invocation': { version: 1, promptId: 'mine' },
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  };
  const { promptId } = await bridge.prompt(sessionId, TEXT('x [[plain]]'), smuggled, as(clientId));
  await listener.event('turn_complete');
  expect(place.sent('session/prompt')[0].params._meta).toEqual({
    traceparent: smuggled.traceparent,
    'qwen-code/invocation': { version: 1, sessionId, promptId, originatorClientId: clientId },
  });
});

test('[DM-1, RS-6, BT-10] a cancel tells the child first, then what becomes of its question; a later load asks again', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { clientId } = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string };
  const listener = await Listener.of(bridge, sessionId);
  const first = await listener.event('permission_request');
  const from = place.frames().length;
  await bridge.cancel(sessionId, as(clientId));
  const done = await listener.event('turn_complete');
  expect(done.data).toMatchObject({ stopReason: 'cancelled', promptCancelled: { cancelledAt: expect.any(Number) } });
  const asked = listener.types().indexOf('permission_request');
  expect(
    listener
      .types()
      .slice(asked)
      .filter((type) => !type.startsWith('session_update')),
  ).toEqual(['permission_request', 'prompt_cancelled', 'permission_resolved', 'turn_complete']);
  const toChild = place
    .frames()
    .slice(from)
    .flatMap(({ dir, frame }) => (dir === 'to-child' ? [frame] : []));
  expect(toChild[0].method).toBe('craft/cancelPendingPrompt');
  expect(toChild[1].result).toEqual({
    outcome: { outcome: 'cancelled' },
    _meta: { 'qwen.daemon.permissionCancelReason': 'session_closed' },
  });
  const seen = listener.events.length;
  expect(await bridge.load(sessionId, {}, as(clientId))).toMatchObject({
    attached: true,
    clientId,
    hasActivePrompt: true,
  });
  const second = await listener.event('permission_request', seen);
  expect(second.data.requestId).not.toBe(first.data.requestId);
});

test('[DM-1, BT-1] closing a session tells the child before its question is resolved, and a load brings it back', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  await listener.event('permission_request');
  const from = place.frames().length;
  await bridge.close(sessionId, as(clientId));
  await listener.over;
  const closed = listener.events.at(-1);
  expect(closed).toMatchObject({ type: 'session_closed', data: { reason: 'client_close', closedBy: clientId } });
  expect(listener.types()).toContain('permission_resolved');
  const toChild = place
    .frames()
    .slice(from)
    .flatMap(({ dir, frame }) => (dir === 'to-child' ? [frame] : []));
  expect(toChild[0].method).toBe('qwen/control/session/close');
  expect(toChild[1].result._meta).toEqual({ 'qwen.daemon.permissionCancelReason': 'session_closed' });
  await expect(bridge.status(sessionId)).rejects.toMatchObject({ status: 404 });
  expect(await bridge.load(sessionId, {}, as('me'))).toMatchObject({ attached: false, hasActivePrompt: true });
});

test('[DM-11, BT-1] a shutdown resolves what waits toward the child, tells subscribers and leaves no process', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  const { promptId } = await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  await listener.event('permission_request');
  const pid = place.childPid();
  const began = performance.now();
  await bridge.shutdown();
  expect(performance.now() - began).toBeLessThan(4_500);
  await listener.over;
  expect(listener.types().slice(-4)).toEqual(['permission_resolved', 'turn_error', 'prompt_cancelled', 'session_died']);
  expect(listener.events.at(-3)?.data).toMatchObject({ code: 'daemon_shutdown', promptId });
  expect(listener.events.at(-1)?.data).toEqual({ sessionId, reason: 'daemon_shutdown' });
  const replies = place.frames().filter(({ dir, frame }) => dir === 'to-child' && frame.result?.outcome);
  expect(replies.map(({ frame }) => frame.result._meta)).toEqual([
    { 'qwen.daemon.permissionCancelReason': 'session_closed' },
  ]);
  expect(() => process.kill(pid, 0)).toThrow();
  await expect(bridge.createSession({}, as())).rejects.toMatchObject({ status: 503 });
  const next = place.bridge();
  expect(await next.load(sessionId, {}, as('me'))).toMatchObject({ hasActivePrompt: true });
});

test('[DM-1, RS-8] continue is refused while a question can be asked again, and runs where none can', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const asking = place.bridge();
  const { clientId } = (await asking.load(sessionId, {}, as('me'))) as { clientId: string };
  await (await Listener.of(asking, sessionId)).event('permission_request');
  expect(await asking.continueSession(sessionId, as(clientId))).toMatchObject({ accepted: false });
  await asking.shutdown();
  const bridge = place.bridge();
  const loaded = (await bridge.load(sessionId, {}, as())) as { clientId: string };
  const listener = await Listener.of(bridge, sessionId);
  const answer = await bridge.continueSession(sessionId, as(loaded.clientId));
  expect(answer).toMatchObject({ accepted: true, interruption: 'interrupted_turn', promptId: expect.any(String) });
  expect((await listener.event('turn_complete')).promptId).toBe(answer['promptId']);
  expect(listener.types()[0]).not.toBe('session_update user_message_chunk');
});

test('[DM-1, DM-3, DM-4] a branch is refused while a prompt runs; after a cancel its copy asks nothing', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { clientId } = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string };
  const listener = await Listener.of(bridge, sessionId);
  await listener.event('permission_request');
  await expect(bridge.branch(sessionId, {}, as(clientId))).rejects.toMatchObject({
    status: 409,
    code: 'branch_while_prompt_active',
  });
  await bridge.cancel(sessionId, as(clientId));
  await listener.event('turn_complete');
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any form
  const fork = (await bridge.branch(sessionId, { name: 'fork1' }, as(clientId))) as Record<string, any>;
  expect(fork).toMatchObject({
    attached: false,
    hasActivePrompt: false,
    compactedReplay: [],
    displayName: expect.stringContaining('fork1'),
    forkedFrom: { sessionId, displayName: sessionId.slice(0, 8) },
  });
  expect(fork['liveJournal'].length).toBeGreaterThan(2);
  const load = place.sent('session/load').at(-1);
  expect(load.params._meta).toEqual({ 'qwen.daemon.suppressRestoreAskUserQuestion': true });
  expect(await bridge.status(fork['sessionId'])).toMatchObject({
    displayName: fork['displayName'],
    isWaitingForUserQuestion: false,
  });
});

test('[DM-1] a page of history is asked of the child, and where older records begin is told', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const loaded = await bridge.load(sessionId, { historyPageSize: 2 }, as('me'));
  expect(place.sent('session/load')[0].params._meta).toMatchObject({ 'qwen.session.loadReplayPageSize': 2 });
  expect(loaded).toMatchObject({
    hasActivePrompt: true,
    historyHasMore: true,
    historyAnchorRecordId: expect.any(String),
  });
  expect((loaded['compactedReplay'] as object[]).map((event) => ({ ...event }))).toMatchObject([{ id: 1 }, { id: 2 }]);
});

test('[DM-1] a shared session is the same for all who ask for no other', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const shared = await Promise.all([1, 2, 3].map(() => bridge.createSession({}, as())));
  expect(new Set(shared.map(({ sessionId }) => sessionId)).size).toBe(1);
  expect(shared.map(({ attached }) => attached)).toEqual([false, true, true]);
  const own = await bridge.createSession({ sessionScope: 'thread' }, as());
  const named = await bridge.createSession({ sessionId: '22222222-2222-4222-8222-222222222222' }, as());
  expect(named).toMatchObject({ sessionId: '22222222-2222-4222-8222-222222222222', attached: false });
  expect(own.sessionId).not.toBe(shared[0]?.sessionId);
  expect(await bridge.createSession({}, as())).toMatchObject({ sessionId: shared[0]?.sessionId, attached: true });
  await expect(bridge.createSession({ cwd: '/tmp' }, as())).rejects.toMatchObject({
    status: 400,
    code: 'workspace_mismatch',
    details: { boundWorkspace: place.cwd, requestedWorkspace: '/tmp' },
  });
});

test('[DM-12] no more sessions than the cap', async () => {
  const bridge = new Place().bridge({ maxSessions: 1 });
  await bridge.createSession({ sessionScope: 'thread' }, as());
  await expect(bridge.createSession({ sessionScope: 'thread' }, as())).rejects.toMatchObject({
    status: 503,
    code: 'session_limit_exceeded',
  });
});

test('[DM-7] detaching decides nothing; a session without clients is closed when its turn is over', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { clientId } = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string };
  const listener = await Listener.of(bridge, sessionId);
  const asked = await listener.event('permission_request');
  await bridge.detach(sessionId, as(clientId));
  expect(await bridge.status(sessionId)).toMatchObject({ clientCount: 0, isWaitingForUserQuestion: true });
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as());
  await listener.over;
  expect(listener.types().slice(-2)).toEqual(['turn_complete', 'session_closed']);
  await expect(bridge.status(sessionId)).rejects.toMatchObject({ status: 404 });
});

test('[DM-1, DM-2] the list of sessions has the live ones with their state, and the saved ones', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  expect(await bridge.sessions(place.cwd)).toMatchObject({ sessions: [{ sessionId, clientCount: 0 }] });
  await bridge.load(sessionId, {}, as('me'));
  await (await Listener.of(bridge, sessionId)).event('permission_request');
  expect(await bridge.sessions(place.cwd)).toMatchObject({
    sessions: [{ sessionId, clientCount: 1, isWaitingForUserQuestion: true, pendingInteractionCount: 1 }],
  });
  await expect(bridge.sessions('/elsewhere')).rejects.toMatchObject({ status: 400, code: 'workspace_mismatch' });
});

test('[DM-1, DM-6, K016] unknown sessions are 404 everywhere, and nothing is started for them', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const notFound = { status: 404, code: 'session_not_found', details: { sessionId } };
  const calls = [
    () => bridge.status(sessionId),
    () => bridge.prompt(sessionId, ASK, undefined, as()),
    () => bridge.cancel(sessionId, as()),
    () => bridge.close(sessionId, as()),
    () => bridge.detach(sessionId, as()),
    () => bridge.heartbeat(sessionId, as()),
    () => bridge.continueSession(sessionId, as()),
    () => bridge.branch(sessionId, {}, as()),
    () => bridge.vote(sessionId, 'x', BLUE, as()),
    () => bridge.subscribe(sessionId, { snapshot: false }),
  ];
  for (const call of calls) await expect(call()).rejects.toMatchObject(notFound);
  const unknown = '33333333-3333-4333-8333-333333333333';
  await expect(bridge.load(unknown, {}, as('x'))).rejects.toMatchObject({
    status: 404,
    details: { sessionId: unknown },
  });
});

test('[DM-1] a client id that is not attached is refused, and the heartbeat of one that is, answered', async () => {
  const bridge = new Place().bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  await expect(bridge.prompt(sessionId, ASK, undefined, as('client_nope'))).rejects.toMatchObject({
    status: 400,
    code: 'invalid_client_id',
    details: { sessionId, clientId: 'client_nope' },
  });
  expect(await bridge.heartbeat(sessionId, as(clientId))).toEqual({
    sessionId,
    clientId,
    lastSeenAt: expect.any(Number),
  });
});

test('[DM-8, BT-10, K028] a question that nobody answers in time is unattended, and the next load asks it again with a new clock', async () => {
  const place = new Place();
  const bridge = place.bridge({ permissionResponseTimeoutMs: 30 });
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  const resolved = await listener.event('permission_resolved');
  expect(resolved.data).toMatchObject({ outcome: { outcome: 'cancelled' }, reason: 'timeout' });
  expect((await listener.event('turn_complete')).data).toMatchObject({ stopReason: 'end_turn' });
  const seen = listener.events.length;
  expect(await bridge.load(sessionId, {}, as(clientId))).toMatchObject({ attached: true, hasActivePrompt: true });
  const again = await listener.event('permission_request', seen);
  expect(again.data.requestId).not.toBe(resolved.data.requestId);
  expect((await listener.event('permission_resolved', seen)).data).toMatchObject({ reason: 'timeout' });
});

test('[BT-4, DM-10] a vote that was accepted is not asked for again when the child died before it could use it', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const listener = await Listener.of(bridge, sessionId);
  await bridge.prompt(sessionId, ASK, undefined, as(clientId));
  const asked = await listener.event('permission_request');
  process.kill(place.childPid(), 'SIGSTOP');
  await bridge.vote(sessionId, asked.data.requestId, BLUE, as(clientId));
  place.killChild();
  await listener.over;
  const { lastEventId } = (await bridge.load(sessionId, {}, as('me'))) as { lastEventId: number };
  const after = await Listener.of(bridge, sessionId, { lastEventId });
  await after.event('turn_complete');
  expect(after.types()).not.toContain('permission_request');
  expect(JSON.stringify(after.events)).toContain('Blue');
});

test('[DM-11] a shutdown while the child is just starting ends it, and whoever waited for it is told', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const waiting = bridge.createSession({}, as());
  const refused = expect(waiting).rejects.toMatchObject({ status: 503, code: 'agent_channel_closed' });
  await bridge.shutdown();
  await refused;
});

test('[DM-1] a load of a session that is just being closed brings it back afterwards', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  const { clientId } = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string };
  const [, loaded] = await Promise.all([bridge.close(sessionId, as(clientId)), bridge.load(sessionId, {}, as('me'))]);
  expect(loaded).toMatchObject({ attached: false, hasActivePrompt: true });
});

test('[DM-1] of two closings at once both are done, and the session is gone', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  await Promise.all([bridge.close(sessionId, as(clientId)), bridge.close(sessionId, as(clientId))]);
  const closings = place.frames().filter(({ frame }) => frame?.method === 'qwen/control/session/close');
  expect(closings).toHaveLength(1);
  await expect(bridge.status(sessionId)).rejects.toMatchObject({ status: 404 });
});

test('[DM-11] a prompt that comes while the daemon stops is refused and does not reach the child', async () => {
  const place = new Place();
  const bridge = place.bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  const stopped = bridge.shutdown();
  await expect(bridge.prompt(sessionId, TEXT('late'), undefined, as(clientId))).rejects.toMatchObject({
    status: 503,
    code: 'daemon_shutdown',
  });
  await stopped;
  expect(place.frames().filter(({ frame }) => frame?.method === 'session/prompt')).toEqual([]);
});

test('[DM-11] a cancel that comes when the daemon has stopped is a 503', async () => {
  const bridge = new Place().bridge();
  const { sessionId, clientId } = await bridge.createSession({}, as());
  await bridge.shutdown();
  await expect(bridge.cancel(sessionId, as(clientId))).rejects.toMatchObject({ status: 503 });
});

test('[DM-3, DM-11] a load whose answer comes while the daemon stops asks nothing again', async () => {
  const place = new Place();
  const { sessionId } = await place.dangling();
  const bridge = place.bridge();
  await bridge.createSession({ sessionScope: 'thread' }, as());
  const loading = bridge.load(sessionId, {}, as('me')).catch((error: unknown) => error);
  await Promise.all([bridge.shutdown(), loading]);
  expect(place.frames().filter(({ frame }) => frame?.method === 'session/prompt')).toEqual([]);
});
