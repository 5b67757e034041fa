import type { Context } from '../context.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { closing, core, expectStatus, listen, stage, UNKNOWN_ID, UUID } from './daemon-rows.ts';

async function isHealthy(context: Context) {
  const answer = await (await context.shared.daemon()).get('/health');
  expectStatus(answer, 200);
  expectEqual(answer.body?.status, 'ok', 'status', answer);
}

async function saysWhatItCan(context: Context) {
  const answer = await (await context.shared.daemon()).get('/capabilities');
  expectStatus(answer, 200);
  expect(Array.isArray(answer.body?.features), 'features is no list', answer);
  expect(typeof answer.body.workspaceCwd === 'string', 'workspaceCwd is no text', answer);
}

async function switchHasNoTag(context: Context) {
  const answer = await (await context.shared.daemon()).get('/capabilities');
  const tag = answer.body?.features?.find((name: string) =>
    /ask_user|restore_(ask|question)|question_restore/i.test(name),
  );
  expectEqual(tag, undefined, 'the tag', answer);
}

async function unknownRouteIs404(context: Context) {
  const daemon = await context.shared.daemon();
  expectStatus(await daemon.get('/conformance/none'), 404);
}

async function saysWhereItListens(context: Context) {
  const { greeting, url } = await context.shared.daemon();
  const lines = greeting.split('\n').filter((line) => line !== '');
  expect(
    lines.some((line) => line.includes(new URL(url).port)),
    'no line on stdout has its port',
    { text: greeting },
  );
}

async function sessionIsOpened(context: Context) {
  const daemon = await context.shared.daemon();
  const answer = await daemon.post('/session', { ...daemon.place, sessionScope: 'thread' });
  expectStatus(answer, 200);
  const { sessionId, clientId, workspaceCwd, attached } = answer.body;
  closing(context, daemon, { id: sessionId, clientId });
  expect(UUID.test(sessionId), 'sessionId is no UUID', answer);
  expect(/^[A-Za-z0-9._:-]{1,128}$/.test(clientId), 'clientId cannot be sent as a header', answer);
  expectEqual(workspaceCwd, daemon.cwd ?? workspaceCwd, 'workspaceCwd', answer);
  expectEqual(attached, false, 'attached', answer);
}

async function threadsAreTheirOwn(context: Context) {
  const { daemon, session } = await stage(context);
  const other = await daemon.newSession();
  closing(context, daemon, other);
  expect(other.id !== session.id, `both are ${other.id}`);
}

async function sharedIsShared(context: Context) {
  const daemon = await context.serve();
  const [first, second] = [await daemon.post('/session', daemon.place), await daemon.post('/session', daemon.place)];
  expectEqual(second.body?.sessionId, first.body?.sessionId, 'the second sessionId', second);
  expectEqual([first.body.attached, second.body.attached], [false, true], 'attached', second);
  expect(first.body.clientId !== second.body.clientId, 'both have the same clientId', second);
}

async function idMayBeGiven(context: Context) {
  const daemon = await context.shared.daemon();
  const sessionId = crypto.randomUUID();
  const answer = await daemon.post('/session', { ...daemon.place, sessionId });
  expectStatus(answer, 200);
  closing(context, daemon, { id: sessionId, clientId: answer.body.clientId });
  expectEqual(answer.body.sessionId, sessionId, 'sessionId', answer);
}

async function otherWorkspaceIsRefused(context: Context) {
  const daemon = await context.shared.daemon();
  expectStatus(await daemon.post('/session', { cwd: '/conformance/none' }), 400, 'workspace_mismatch');
}

const TEXT = [{ type: 'text', text: 'hello' }];
const VOTE = { outcome: { outcome: 'cancelled' } };
const OF_A_SESSION: readonly (readonly [method: string, rest: string, body?: object])[] = [
  ['GET', '/status'],
  ['GET', '/events'],
  ['GET', '/transcript'],
  ['POST', '/load', {}],
  ['POST', '/resume', {}],
  ['POST', '/prompt', { prompt: TEXT }],
  ['POST', '/cancel', {}],
  ['POST', '/continue', {}],
  ['POST', '/branch', {}],
  ['POST', '/heartbeat', {}],
  ['POST', `/permission/${UNKNOWN_ID}`, VOTE],
  ['DELETE', ''],
];

async function unknownSessionIs404(context: Context) {
  const daemon = await context.shared.daemon();
  for (const [method, rest, body] of OF_A_SESSION) {
    const answer = await daemon.send({ method, path: `/session/${UNKNOWN_ID}${rest}`, ...(body && { body }) });
    expectStatus(answer, 404, 'session_not_found');
  }
}

async function badClientIdIs400(context: Context) {
  const { daemon, session } = await stage(context);
  for (const clientId of ['bad id', 'x'.repeat(129)])
    expectStatus(await daemon.prompt({ id: session.id, clientId }, 'hello'), 400, 'invalid_client_id');
}

async function foreignClientIdIs400(context: Context) {
  const { daemon, session } = await stage(context);
  expectStatus(await daemon.prompt({ id: session.id, clientId: 'client_conformance' }, 'hi'), 400, 'invalid_client_id');
}

async function heartbeatIsAnswered(context: Context) {
  const { daemon, session } = await stage(context);
  expectStatus(await daemon.post(`/session/${session.id}/heartbeat`, {}, session.clientId), 200);
}

async function statusOfAnIdle(context: Context) {
  const { daemon, session } = await stage(context);
  const answer = await daemon.status(session.id);
  expectStatus(answer, 200);
  const { createdAt, workspaceCwd, ...status } = answer.body;
  expect(!Number.isNaN(Date.parse(createdAt)), 'createdAt is no time', answer);
  expectEqual(workspaceCwd, daemon.cwd ?? workspaceCwd, 'workspaceCwd', answer);
  for (const [key, value] of Object.entries({ ...IDLE, sessionId: session.id }))
    expectEqual(status[key], value, key, answer);
}

const IDLE = {
  clientCount: 1,
  hasActivePrompt: false,
  isWaitingForPermission: false,
  isWaitingForUserQuestion: false,
  pendingInteractionCount: 0,
  pendingInteractions: [],
};

async function detachLeaves(context: Context) {
  const { daemon, session } = await stage(context);
  const other = await daemon.load(session.id, 'kit-second');
  expectEqual((await daemon.status(session.id)).body.clientCount, 2, 'clientCount', other);
  const answer = await daemon.post(`/session/${session.id}/detach`, {}, other.body.clientId);
  expectStatus(answer, 204);
  expectEqual((await daemon.status(session.id)).body.clientCount, 1, 'clientCount', answer);
}

async function liveIsListed(context: Context) {
  const { daemon, session } = await stage(context);
  const { body } = await daemon.status(session.id);
  const list = await daemon.get(`/workspace/${encodeURIComponent(body.workspaceCwd)}/sessions`);
  expectStatus(list, 200);
  const found = list.body.sessions?.filter((one: Json) => one.sessionId === session.id) ?? [];
  expectEqual(found.length, 1, 'how often the session is in the list', list);
  for (const key of ['hasActivePrompt', 'isWaitingForUserQuestion', 'pendingInteractionCount', 'clientCount'])
    expectEqual(found[0][key], body[key], key, list);
}

async function pageSizeIsChecked(context: Context) {
  const { daemon, session } = await stage(context);
  for (const historyPageSize of [0, 501, 'x', 1.5]) {
    const answer = await daemon.load(session.id, 'kit-loader', { historyPageSize });
    expectStatus(answer, 400, 'invalid_transcript_limit');
  }
}

async function closeEndsTheEvents(context: Context) {
  const { daemon, session } = await stage(context);
  const events = await listen(context, daemon, session.id);
  expectStatus(await daemon.delete(session), 204);
  await events.next('session_closed');
  await events.end();
}

export const SESSIONS: readonly Check[] = [
  ...core('served', ['START-1', 'DM-1', 'A line on stdout says where it listens.', saysWhereItListens]),
  ...core(
    'daemon',
    ['START-2', 'DM-1', 'GET /health is 200 and ok.', isHealthy],
    ['START-3', 'DM-1', 'GET /capabilities lists features and names the workspace.', saysWhatItCan],
    ['START-4', 'CLI-2', 'Nothing there tells the switch.', switchHasNoTag],
    ['START-5', 'DM-1', 'A route that is not there is a 404.', unknownRouteIs404],
    ['SESSION-1', 'DM-1', 'POST /session answers with ids of the session and the client.', sessionIsOpened],
    ['SESSION-2', 'DM-1', 'Two sessions of scope thread are two.', threadsAreTheirOwn],
  ),
  ...core('served', [
    'SESSION-3',
    'DM-1',
    'Without a scope a second client is attached to the first session.',
    sharedIsShared,
  ]),
  ...core(
    'daemon',
    ['SESSION-4', 'DM-1', 'The id of a session may be given.', idMayBeGiven],
    ['SESSION-5', 'DM-1', 'Another workspace is refused: 400 workspace_mismatch.', otherWorkspaceIsRefused],
    ['SESSION-6', 'DM-1', 'On every route an unknown session is a 404 session_not_found.', unknownSessionIs404],
    ['SESSION-7', 'DM-1', 'A client id of the wrong form is a 400 invalid_client_id.', badClientIdIs400],
    [
      'SESSION-8',
      'DM-1',
      'A prompt under an id that nobody was given is a 400 invalid_client_id.',
      foreignClientIdIs400,
    ],
    ['SESSION-9', 'DM-1', 'A heartbeat is answered with 200.', heartbeatIsAnswered],
    ['SESSION-10', 'DM-2', 'The status of an idle session says that nothing runs and nothing waits.', statusOfAnIdle],
    ['SESSION-11', 'DM-1', 'A client that detaches is not counted any more.', detachLeaves],
    ['SESSION-12', 'DM-1', 'The list of sessions has a live one, with the fields of its status.', liveIsListed],
    ['SESSION-13', 'DM-1', 'A page size out of range is a 400 invalid_transcript_limit.', pageSizeIsChecked],
    ['SESSION-14', 'DM-1', 'DELETE ends the events of a session, saying so.', closeEndsTheEvents],
  ),
];
