import type { Agent } from './agent.ts';
import { Context, type Target } from './context.ts';
import type { Shared } from './shared.ts';
import { CUES, shellOf } from './model/script.ts';
import { QUESTION_TOOL } from './names.ts';
import type { Findings, Need, Status } from './suite.ts';
import { Unmet, within } from './verdicts.ts';
import { isObject, type Json } from './wire.ts';

/** The agent cannot be started, or does not speak the protocol at all; the message says what it did. */
export class NoAgent extends Error {
  override readonly name = 'NoAgent';
}

/** Starts the agent once, and the daemon, and finds out what can be asked of them. Throws `NoAgent`. */
export async function probe(target: Target, patience: number, shared?: Shared): Promise<Findings> {
  const daemon = await lacksOfDaemon(target, shared);
  if (target.command.length === 0) {
    const rest = lack('skipped', 'there is no agent, only a daemon', ...OF_AN_AGENT);
    return { initialized: undefined, tools: [], lacks: new Map([...daemon, ...rest]) };
  }
  const context = await Context.open(target, { patience, thinking: 0 });
  try {
    const agent = await context.agent().catch((error: unknown) => {
      throw new NoAgent(`The agent did not start: ${error instanceof Error ? error.message : String(error)}`);
    });
    const lacks = new Map([...daemon, ...unadvertised(agent.initialized), ...(await unusable(agent, context))]);
    const tools = new Set(context.model.requests.flatMap((request) => request.tools));
    return { initialized: agent.initialized, tools: [...tools], lacks };
  } finally {
    await context.close();
  }
}

async function lacksOfDaemon({ daemon }: Target, shared: Shared | undefined): Promise<Lack[]> {
  const all = ['daemon', 'served', 'talking', 'asking', 'restoring', 'hung'] as const;
  if (daemon === undefined || shared === undefined) return lack('skipped', 'no --daemon or --serve', ...all);
  const found = await shared.found().catch((error: unknown) => {
    throw new NoAgent(`The daemon did not start: ${error instanceof Error ? error.message : String(error)}`);
  });
  return found === undefined ? [] : lack(found.status, found.reason, ...all.slice(all.indexOf(found.need)));
}

type Lack = [Need, { status: Status; reason: string }];
const OF_AN_AGENT: readonly Need[] = [
  'agent',
  'session',
  'turn',
  'model',
  'question',
  'shell',
  'load',
  'resume',
  'list',
  'close',
  'delete',
];
const lack = (status: Status, reason: string, ...needs: Need[]) =>
  needs.map((need): Lack => [need, { status, reason }]);

function unadvertised(initialized: Json): Lack[] {
  const { loadSession, sessionCapabilities: sessions } = initialized.agentCapabilities ?? {};
  const has: [Need, boolean][] = [
    ['load', loadSession === true],
    ...(['resume', 'list', 'close', 'delete'] as const).map((name): [Need, boolean] => [
      name,
      isObject(sessions?.[name]),
    ]),
  ];
  return has.flatMap(([need, is]): Lack[] => (is ? [] : [[need, { status: 'not advertised', reason: `no ${need}` }]]));
}

/** What only trying tells: whether it opens a session, asks the kit's model, and what it offers the model. */
async function unusable(agent: Agent, { model, patience }: Context): Promise<Lack[]> {
  const opened = await agent.newSession().catch((error: unknown) => error as Error);
  if (opened instanceof Error) {
    const why = opened instanceof Unmet ? (opened.frame ?? opened.message) : opened.message;
    return lack('skipped', `it opens no session: ${why}`, 'session', 'turn', 'model', 'question', 'shell');
  }
  const turn = agent.start(opened, CUES.say);
  await within(Promise.race([turn.done, model.asked(1)]), patience, 'the first turn').catch(() => {});
  if (model.requests.length === 0) {
    const ended = await turn.done.then(({ error }) => error === undefined).catch(() => false);
    return [
      ...lack('skipped', "it does not ask the kit's model", 'model', 'question', 'shell'),
      ...(ended ? [] : lack('skipped', "its turns do not end, and it does not ask the kit's model", 'turn')),
    ];
  }
  await turn.done.catch(() => {});
  const tools = model.requests.flatMap((request) => request.tools);
  return [
    ...(tools.includes(QUESTION_TOOL)
      ? []
      : lack('not advertised', `it offers the model no ${QUESTION_TOOL}`, 'question')),
    ...(shellOf(tools) ? [] : lack('skipped', 'it offers the model no shell that the kit knows', 'shell')),
  ];
}
