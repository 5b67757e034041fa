import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../log.ts';
import type { SessionRef, Tool, Toolbox, ToolSetup, ToolSource } from './ports.ts';
import { ASK_USER_QUESTION } from './question.ts';

/** A turn goes on without the tools when they are not there by then, in ms; the next turn looks again. */
const OPEN_DEADLINE_MS = 30_000;
/** Tools that do not end are left behind, in ms. */
const CLOSE_DEADLINE_MS = 1_000;

const NOTHING: ToolSetup = { roots: [], mcpServers: [] };

/** The tools of one session: made when a turn first needs them, made anew when a client gives others, ended once. */
export class SessionTools {
  /** What a person has allowed for the whole session. */
  readonly allowed = new Set<string>();
  readonly #session: SessionRef;
  readonly #source: ToolSource;
  readonly #log: Log;
  #setup = NOTHING;
  #opening: Promise<Toolbox | undefined> | undefined;
  /** Replaced ones, which a running turn may still use. */
  #retired: Promise<Toolbox | undefined>[] = [];
  #closed = false;
  /** What a person was told of these tools, as long as it holds. */
  #told: ReadonlySet<string> = new Set();

  constructor(session: SessionRef, source: ToolSource, log: Log) {
    this.#session = session;
    this.#source = source;
    this.#log = log;
  }

  get roots(): readonly string[] {
    return this.#setup.roots;
  }

  /** What the client that attached last gave. A turn that is running keeps what it began with: see `retire`. */
  configure(setup: ToolSetup): void {
    // Tools know no folders but those of each call, so other folders start no server anew.
    const same = JSON.stringify(setup.mcpServers) === JSON.stringify(this.#setup.mcpServers);
    this.#setup = setup;
    if (same) return;
    if (this.#opening !== undefined) this.#retired.push(this.#opening);
    this.#opening = undefined;
  }

  /** The session's tools; undefined when they cannot be had. Throws the signal's reason on abort. */
  async open(signal: AbortSignal): Promise<Toolbox | undefined> {
    signal.throwIfAborted();
    if (this.#closed) return undefined;
    this.#opening ??= this.#start();
    const stop = new AbortController();
    const late = delay(OPEN_DEADLINE_MS, undefined, { signal: AbortSignal.any([signal, stop.signal]), ref: false });
    try {
      return await Promise.race([this.#opening, late]);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      late.catch(ignore);
      stop.abort();
    }
  }

  /** What a person has to know of the tools and was not told yet; what is over may be told again. */
  news(box: Toolbox | undefined): readonly string[] {
    const warnings = box?.set.warnings ?? [];
    const news = warnings.filter((warning) => !this.#told.has(warning));
    this.#told = new Set(warnings);
    return news;
  }

  /** Ends what was replaced; called when no turn runs. */
  async retire(): Promise<void> {
    const retired = this.#retired;
    this.#retired = [];
    await this.#close(retired);
  }

  /** Ends everything, within a deadline. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#opening !== undefined) this.#retired.push(this.#opening);
    this.#opening = undefined;
    await this.retire();
  }

  #start(): Promise<Toolbox | undefined> {
    const opening = (async () => await this.#source(this.#session, this.#setup))().catch((error: unknown) => {
      this.#log.warn(`the tools of session ${this.#session.id} could not be started`, error);
      // The next turn tries again.
      if (this.#opening === opening) this.#opening = undefined;
      return undefined;
    });
    return opening;
  }

  async #close(boxes: readonly Promise<Toolbox | undefined>[]): Promise<void> {
    if (boxes.length === 0) return;
    const ended = boxes.map(async (box) => await (await box)?.set.close());
    for (const each of ended) each.catch(ignore);
    const stop = new AbortController();
    const late = delay(CLOSE_DEADLINE_MS, undefined, { signal: stop.signal, ref: false });
    late.catch(ignore);
    try {
      await Promise.race([Promise.all(ended), late]);
    } catch (error) {
      this.#log.warn(`the tools of session ${this.#session.id} did not end well`, error);
    } finally {
      stop.abort();
    }
  }
}

/** What a model is offered beside the question, whose name is taken. */
export const offeredTools = (box: Toolbox | undefined): readonly Tool[] =>
  (box?.set.tools ?? []).filter(({ declaration }) => declaration.name !== ASK_USER_QUESTION);

function ignore(): void {}
