import type { Bridge, Caller, Vote } from './ports.ts';
import type { Bodies, BodyName } from './schemas.ts';

/** A request whose ids and body are checked. */
export interface RouteRequest<N extends BodyName> {
  readonly sessionId: string;
  readonly requestId: string;
  /** The workspace in the path. */
  readonly cwd: string;
  readonly body: Bodies[N];
  readonly caller: Caller;
}

export interface Route {
  readonly method: 'get' | 'post' | 'delete';
  /** `:id` is a session's, `:requestId` a permission request's, `:cwd` a workspace. */
  readonly path: string;
  readonly summary: string;
  readonly body?: BodyName;
  /** Of an answer that is no error; 204 has no body. */
  readonly status: 200 | 201 | 202 | 204;
  readonly noStore?: true;
  run(bridge: Bridge, request: RouteRequest<BodyName>): Promise<unknown>;
}

/** Gives `run` the body that the route names. */
function route<N extends BodyName>(
  method: Route['method'],
  path: string,
  about: {
    readonly summary: string;
    readonly body?: N;
    readonly status?: Route['status'];
    readonly noStore?: true;
  },
  run: (bridge: Bridge, request: RouteRequest<N>) => Promise<unknown>,
): Route {
  // What `body` names is what the app parses before it calls `run`.
  return { method, path, status: 200, ...about, run: run as Route['run'] };
}

/** Every route but those of `app.ts` that are no call of the bridge's: events and the documents. */
export const ROUTES: readonly Route[] = [
  route('get', '/health', { summary: 'Whether the daemon runs' }, async (bridge) => bridge.health()),
  route('get', '/capabilities', { summary: 'What the daemon can do' }, async (bridge) => bridge.capabilities()),
  route(
    'post',
    '/session',
    { summary: 'Start a session, or attach to the shared one', body: 'create' },
    (bridge, { body: { sessionScope, ...rest }, caller }) =>
      bridge.createSession(
        { ...rest, ...(sessionScope && { sessionScope: sessionScope === 'thread' ? 'thread' : 'shared' }) },
        caller,
      ),
  ),
  route(
    'post',
    '/session/:id/load',
    { summary: 'Load a saved session with its history; an open question is asked again', body: 'load' },
    (bridge, { sessionId, body, caller }) => bridge.load(sessionId, body, caller),
  ),
  route(
    'post',
    '/session/:id/resume',
    { summary: 'The same without the history', body: 'resume' },
    (bridge, { sessionId, body, caller }) => bridge.resume(sessionId, body, caller),
  ),
  route(
    'post',
    '/session/:id/prompt',
    { summary: 'Start a turn, or queue it', body: 'prompt', status: 202 },
    (bridge, { sessionId, body, caller }) => bridge.prompt(sessionId, body.prompt, body._meta, caller),
  ),
  route(
    'post',
    '/session/:id/cancel',
    { summary: 'Cancel the running turn', body: 'empty', status: 204 },
    (bridge, { sessionId, caller }) => bridge.cancel(sessionId, caller),
  ),
  route(
    'post',
    '/session/:id/continue',
    { summary: 'Go on with an interrupted turn', body: 'empty' },
    (bridge, { sessionId, caller }) => bridge.continueSession(sessionId, caller),
  ),
  route(
    'post',
    '/session/:id/branch',
    { summary: 'Make a session of its own of the history so far', body: 'branch', status: 201 },
    (bridge, { sessionId, body, caller }) => bridge.branch(sessionId, body, caller),
  ),
  route(
    'post',
    '/session/:id/detach',
    { summary: 'Leave the session; nothing is decided by it', body: 'empty', status: 204 },
    (bridge, { sessionId, caller }) => bridge.detach(sessionId, caller),
  ),
  route(
    'post',
    '/session/:id/heartbeat',
    { summary: 'Say that the client is still there', body: 'empty' },
    (bridge, { sessionId, caller }) => bridge.heartbeat(sessionId, caller),
  ),
  route(
    'delete',
    '/session/:id',
    { summary: 'Close the live session; it stays on disk', body: 'empty', status: 204 },
    (bridge, { sessionId, caller }) => bridge.close(sessionId, caller),
  ),
  route(
    'get',
    '/session/:id/status',
    { summary: 'What the session does, and the questions that wait' },
    (bridge, { sessionId }) => bridge.status(sessionId),
  ),
  route(
    'get',
    '/session/:id/transcript',
    { summary: 'The history as updates', noStore: true },
    (bridge, { sessionId }) => bridge.transcript(sessionId),
  ),
  route(
    'post',
    '/session/:id/permission/:requestId',
    { summary: 'Vote on a waiting question or permission of the session', body: 'vote' },
    (bridge, { sessionId, requestId, body, caller }) => vote(bridge, sessionId, requestId, body, caller),
  ),
  route(
    'post',
    '/permission/:requestId',
    { summary: 'The same for a request of any session', body: 'vote' },
    (bridge, { requestId, body, caller }) => vote(bridge, undefined, requestId, body, caller),
  ),
  route(
    'get',
    '/workspace/:cwd/sessions',
    { summary: 'The live and saved sessions of a workspace, its path URL-encoded' },
    (bridge, { cwd }) => bridge.sessions(cwd),
  ),
];

async function vote(
  bridge: Bridge,
  sessionId: string | undefined,
  requestId: string,
  { outcome, answers }: Bodies['vote'],
  caller: Caller,
): Promise<object> {
  const checked: Vote =
    outcome.outcome === 'cancelled'
      ? { kind: 'cancelled' }
      : { kind: 'selected', optionId: outcome.optionId, ...(answers && { answers }) };
  await bridge.vote(sessionId, requestId, checked, caller);
  return {};
}
