import { Context, type Target, type Waits } from './context.ts';
import { Daemon, type Waiting } from './daemon.ts';
import { CUES } from './model/script.ts';
import type { FakeModel } from './model/server.ts';
import { QUESTION_TOOL, SWITCH } from './names.ts';
import type { Need, Status } from './suite.ts';
import { Unmet } from './verdicts.ts';

/** A question that was asked by a daemon which was killed with its agent. */
export type Hung = Waiting;

/** The first need that a daemon does not meet; those after it are not met either. */
interface Missing {
  readonly need: Extract<Need, 'served' | 'talking' | 'asking' | 'restoring'>;
  readonly status: Status;
  readonly reason: string;
}

interface Ready {
  readonly daemon: Daemon;
  readonly missing: Missing | undefined;
  readonly hung: readonly Hung[];
  /** Why there are fewer questions than were to hang. */
  readonly trouble: unknown;
}

/**
 * What the checks of a run share, as starting a daemon may take seconds: one that was killed while questions waited, and
 * started again. Each check has sessions of its own there. Nothing is started before it is asked for.
 */
export class Shared {
  readonly #target: Target;
  readonly #waits: Waits;
  readonly #count: number;
  #context: Promise<Context> | undefined;
  #ready: Promise<Ready> | undefined;
  #taken = 0;

  /** `count`: how many questions are to hang. */
  constructor(target: Target, waits: Waits, count: number) {
    this.#target = target;
    this.#waits = waits;
    this.#count = count;
  }

  /** Rejects where the daemon cannot be started. */
  async daemon(): Promise<Daemon> {
    return (await this.#start()).daemon;
  }

  /** The model of that daemon's agent, which other checks use at the same time. */
  async model(): Promise<FakeModel> {
    return (await this.#open()).model;
  }

  /** What cannot be asked of the daemon; undefined for nothing. */
  async found(): Promise<Missing | undefined> {
    return (await this.#start()).missing;
  }

  /** A question that nobody has loaded since the daemon was started again. */
  async hung(): Promise<Hung> {
    const { hung, trouble } = await this.#start();
    const one = hung[this.#taken];
    this.#taken += 1;
    if (one !== undefined) return one;
    throw trouble ?? new Unmet('no question hangs any more');
  }

  async close(): Promise<void> {
    await this.#ready?.catch(() => {});
    await (await this.#context)?.close();
  }

  #open(): Promise<Context> {
    this.#context ??= Context.open(this.#target, this.#waits);
    return this.#context;
  }

  #start(): Promise<Ready> {
    this.#ready ??= this.#prepare();
    return this.#ready;
  }

  async #prepare(): Promise<Ready> {
    const { daemon: wanted } = this.#target;
    const context = await this.#open();
    if (wanted !== undefined && 'url' in wanted) {
      const daemon = new Daemon({ url: wanted.url }, this.#waits.patience);
      await daemon.get('/health');
      const missing = { need: 'served', status: 'skipped', reason: 'the kit did not start the daemon' } as const;
      return { daemon, missing, hung: [], trouble: undefined };
    }
    const first = await context.serve();
    const missing = (await whatIsMissing(first, context)) ?? missingSwitch(wanted?.serve ?? '');
    if (missing !== undefined || this.#count === 0) return { daemon: first, missing, hung: [], trouble: undefined };
    const asked = await Promise.allSettled(Array.from({ length: this.#count }, () => askIn(first)));
    await context.crash(first);
    return {
      daemon: await context.serve(),
      missing,
      hung: asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
      trouble: asked.find((one) => one.status === 'rejected')?.reason,
    };
  }
}

const askIn = async (daemon: Daemon): Promise<Hung> => await daemon.ask(await daemon.newSession(), CUES.askOne);

/** Has one turn, and sees what its agent asks the model. */
async function whatIsMissing(daemon: Daemon, { model }: Context): Promise<Missing | undefined> {
  const turn = async () => {
    const session = await daemon.newSession();
    await daemon.start(session, CUES.say);
    await daemon.idle(session.id);
  };
  const failure = await turn().then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure !== undefined || model.requests.length === 0) {
    const why = failure instanceof Unmet ? `: ${failure.message} ${failure.frame ?? ''}` : '';
    return { need: 'talking', status: 'skipped', reason: `its agent does not ask the kit's model${why}` };
  }
  if (model.requests.some(({ tools }) => tools.includes(QUESTION_TOOL))) return undefined;
  return { need: 'asking', status: 'not advertised', reason: `its agent offers the model no ${QUESTION_TOOL}` };
}

function missingSwitch(command: string): Missing | undefined {
  if (command.includes(SWITCH)) return undefined;
  return { need: 'restoring', status: 'skipped', reason: `the command has no ${SWITCH}` };
}
