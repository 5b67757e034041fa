import { ENDS, type End, FuzzClient, openQuestions, World } from './fuzz-client.ts';
import { ask, CANCELLED, CWD, DECLINE, type Home, RECORDED_SCRIPT, RESTORE, SUPPRESS } from './peer.ts';
import { randomNumbers } from './random.ts';

/** The recorded model's script, which also fails where a provider does and calls what is no valid question. */
const SCRIPT = {
  ...RECORDED_SCRIPT,
  rules: [
    ...['auth', 'rate_limit', 'server', 'broken_stream', 'empty_reply'].map((fault) => ({
      when: { text: `[[${fault}]]` },
      steps: [{ text: 'words before. ' }, ask('Which colour?', 'Colour', ['Red', 'Blue']), { fault }],
    })),
    { when: { response: true, responseText: 'Again' }, steps: [ask('And now?', 'Now', ['Again', 'Enough'])] },
    { when: { text: '[[reused]]' }, steps: [{ ...ask('Same id?', 'Same', ['Again', 'No']), id: 'call_0' }] },
    { when: { text: '[[nameless]]' }, steps: [{ ...ask('No id?', 'None', ['Again', 'No']), id: null }] },
    ...RECORDED_SCRIPT.rules,
  ],
};

const META = 'qwen.session.loadReplayMode';
const PROMPTS = [
  'hello',
  '[[ask1]]',
  '[[ask1]]',
  '[[asktwice]]',
  '[[mixed]]',
  '[[invalid]]',
  '[[stream]]',
  '[[reused]]',
  '[[reused]]',
  '[[nameless]]',
  '[[auth]]',
  '[[broken_stream]]',
];
const selected = (optionId: string, answers?: unknown) => ({
  result: { outcome: { outcome: 'selected', optionId }, answers },
});
const unattended = (reason: string) => ({
  result: { ...CANCELLED, _meta: { 'qwen.daemon.permissionCancelReason': reason } },
});
const REPLIES: readonly (readonly [object, boolean])[] = [
  [selected('proceed_once', { 0: 'Red' }), true],
  [selected('proceed_once', { 0: 'Again' }), true],
  [selected('proceed_once', { 0: 'Again' }), true],
  [selected('proceed_once', {}), true],
  [selected('unknown'), true],
  [{ result: DECLINE }, true],
  [{ result: CANCELLED }, true],
  [{ result: null }, true],
  [{ error: { code: -32000, message: 'no' } }, true],
  [unattended('timeout'), false],
  [unattended('session_closed'), false],
];

type Operation = (client: FuzzClient, sessionId: string, below: (n: number) => number) => Promise<unknown> | undefined;

const place = (sessionId: string) => ({ sessionId, cwd: CWD, mcpServers: [] });
const prompt: Operation = (client, sessionId, below) =>
  client.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: PROMPTS[below(PROMPTS.length)] }] });
const restore: Operation = (client, sessionId) =>
  client.request('session/prompt', { sessionId, prompt: [], _meta: { [RESTORE]: true } });
const load =
  (method: string, _meta: object = {}): Operation =>
  (client, sessionId) =>
    client.request(method, { ...place(sessionId), _meta });
const reply: Operation = (client, _, below) => {
  client.answer(below(client.waiting.length || 1), ...(REPLIES[below(REPLIES.length)] as [object, boolean]));
  return undefined;
};
const plain =
  (method: string, more: object = {}): Operation =>
  (client, sessionId) =>
    client.request(method, { sessionId, ...more });

const OPERATIONS: readonly Operation[] = [
  ...[prompt, prompt, prompt, restore, restore, reply, reply, reply],
  load('session/load'),
  load('session/load'),
  load('session/load', { [META]: 'bulk' }),
  load('session/load', { [SUPPRESS]: true }),
  load('session/resume'),
  load('qwen/session/loadUpdates'),
  (client, sessionId) =>
    client.request('session/prompt', { sessionId, prompt: [], _meta: { 'qwen.daemon.continueLastTurn': true } }),
  plain('qwen/control/session/continue'),
  plain('session/set_mode', { modeId: 'yolo' }),
  plain('session/close'),
  (client, sessionId) => client.cancel(sessionId),
  (client, sessionId, below) => client.cancel(sessionId, below(client.pending.size || 1)),
  (client) => client.request('session/list', { cwd: CWD }),
];

/** A session that is made, or branched off, and one that goes. */
async function turnover(world: World, client: FuzzClient, sessionId: string, below: (n: number) => number) {
  if (below(3) === 0) {
    world.sessions.delete(sessionId);
    world.untouched.delete(sessionId);
    // Its last updates may still come.
    const { error } = await client.request('session/delete', { sessionId });
    if (error) world.faults.push(`delete failed: ${JSON.stringify(error)}`);
    return;
  }
  const made =
    below(2) === 0
      ? await client.request('session/new', { cwd: CWD, mcpServers: [] })
      : await client.request('qwen/control/session/branch', { sessionId, cwd: CWD });
  const id = made.result?.sessionId ?? made.result?.newSessionId;
  if (id !== undefined) world.add(id);
}

/** Lets every session wait with a question that nobody will touch. */
async function leaveWaiting(world: World, clients: readonly FuzzClient[]): Promise<void> {
  for (const client of clients) await client.quiesce();
  const [first] = clients as [FuzzClient];
  for (const sessionId of world.sessions) {
    void first.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: '[[ask1]]' }] });
  }
  // Some are refused: the session is not live, or another process has written to it.
  const settled = () => first.pending.size === first.waiting.length;
  for (let round = 0; round < 1_000 && !settled(); round++) await first.roundTrip();
  if (!settled()) world.faults.push('a question was not asked');
}

export interface FuzzRun {
  readonly seed: number;
  /** Process lives, one after the other. */
  readonly lives: number;
  /** Bursts of requests a life. */
  readonly steps: number;
  /** Processes at once on the same sessions. */
  readonly clients: number;
}

/** Plays random sessions; gives what went wrong, nothing for a sound program. */
export async function fuzz(home: Home, { seed, lives, steps, clients: count }: FuzzRun): Promise<readonly string[]> {
  const below = randomNumbers(seed);
  const world = new World(home);
  // One that is killed in the middle of an append leaves its lock.
  let killed = false;
  for (let life = 0; life < lives && world.faults.length === 0; life++) {
    const clients = Array.from({ length: count }, () => new FuzzClient(world, SCRIPT));
    const [first] = clients as [FuzzClient];
    await Promise.all(clients.map((client) => client.roundTrip()));
    while (world.sessions.size < 3) {
      world.add((await first.request('session/new', { cwd: CWD, mcpServers: [] })).result.sessionId);
    }
    for (const sessionId of world.sessions) {
      const open = openQuestions(world.records(sessionId)).length > 0;
      const { result } = await first.request('session/load', place(sessionId));
      if (result !== undefined && (result._meta?.[RESTORE] === true) !== open) {
        world.faults.push(`life ${life}: the hint is not ${open} for ${sessionId}`);
      }
    }
    for (let step = 0; step < steps && world.faults.length === 0; step++) {
      const client = clients[below(clients.length)] as FuzzClient;
      for (let burst = below(4); burst >= 0; burst--) {
        const sessionId = [...world.sessions][below(world.sessions.size)];
        if (sessionId === undefined) break;
        const operation = OPERATIONS[below(OPERATIONS.length)] as Operation;
        void operation(client, sessionId, below);
      }
      if (below(3) === 0) await client.roundTrip();
      if (below(40) === 0) {
        await client.quiesce();
        const sessionId = [...world.sessions][below(world.sessions.size)];
        if (sessionId !== undefined) await turnover(world, client, sessionId, below);
      }
    }
    if (below(2) === 0) await leaveWaiting(world, clients);
    const ends = clients.map((client) => [client, ENDS[below(ENDS.length)] as End] as const);
    for (const [client, how] of ends) await client.end(how);
    killed ||= ends.some(([, how]) => how === 'SIGKILL');
    if (!killed && world.locks().length > 0) world.faults.push(`left behind: ${world.locks()}`);
  }
  return world.faults;
}
