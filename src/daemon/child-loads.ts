import type * as acp from '@agentclientprotocol/sdk';
import { ERROR_CODE, RequestError } from '../acp/errors.ts';
import * as methods from '../acp/methods.ts';
import { loadRequestMeta } from '../meta/daemon.ts';
import { type RestoreRequest, suppressesRestore } from './admission.ts';
import type { Channel } from './channel.ts';
import { isMethodNotFound } from './child-faults.ts';
import type { SessionEntry, Turn } from './entry.ts';
import { taken } from './load-answer.ts';
import type { DaemonEvent } from './ports.ts';
import { before, lastRecords, type Replay, replayEvents } from './replay.ts';

/** A load or resume of one session: what is asked for, and by whom. */
export interface Asked extends RestoreRequest {
  readonly clientId: string | undefined;
  readonly branch: boolean;
}

/** What a load of a live session has to show; `hint` undefined where the child was not asked. */
interface Shown {
  readonly replay: Replay | undefined;
  readonly liveJournal: readonly DaemonEvent[];
  readonly hint: boolean | undefined;
}

export interface LoadOptions {
  /** The daemon's own switch. */
  readonly switchedOn: boolean;
  readonly cwd: string;
}

/** How long the child may take for a load, in milliseconds. */
export const RESTORE_DEADLINE_MS = 60_000;

/** What the child is asked for a load or resume, and what a live session has to show. */
export class ChildLoads {
  readonly #options: LoadOptions;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Asks the child; nothing is asked again where nobody could answer. Rejects as `Connection.request` does. */
  async call(channel: Channel, sessionId: string, asked: Asked): Promise<acp.LoadSessionResponse> {
    const { switchedOn, cwd } = this.#options;
    const { action, clientId, branch, pageSize } = asked;
    const meta = loadRequestMeta({
      bulk: action === 'load' && !branch,
      suppressRestore: suppressesRestore({ switchedOn, clientId, branch }),
      ...(pageSize !== undefined && action === 'load' && { pageSize }),
    });
    const params = { sessionId, cwd, mcpServers: [], ...(meta && { _meta: meta }) };
    const method = action === 'load' ? methods.loadSession : methods.resumeSession;
    return await channel.connection.request(method, params, { deadlineMs: RESTORE_DEADLINE_MS });
  }

  /** What is shown of a session that is live already. */
  show(entry: SessionEntry, asked: Asked): Promise<Shown> {
    const turn = entry.activeTurn;
    if (turn) return showRunning(entry, turn, asked);
    // A resume shows nothing, so without a client there is nothing to ask the child for.
    if (asked.action === 'resume' && (asked.clientId === undefined || !this.#options.switchedOn)) {
      return Promise.resolve({ replay: undefined, liveJournal: [], hint: undefined });
    }
    return this.#showIdle(entry, asked);
  }

  /** A session where nothing runs is loaded again, as its child may know a question that can be asked by now. */
  async #showIdle(entry: SessionEntry, asked: Asked): Promise<Shown> {
    entry.holdUpdates();
    let response: acp.LoadSessionResponse | undefined;
    try {
      response = await this.call(entry.channel, entry.sessionId, asked);
    } catch (error) {
      // A session in which nothing was said yet is not on disk.
      if (!(error instanceof RequestError && error.code === ERROR_CODE.resourceNotFound)) throw error;
    } finally {
      if (response === undefined) release(entry);
    }
    if (response === undefined) return { replay: { compactedReplay: [] }, liveJournal: [], hint: undefined };
    const { hint, state, replay } = taken(response);
    entry.adoptState(state);
    // A child that streams its replay all the same repeats what subscribers have.
    const streamed = replay === undefined && asked.action === 'load' ? entry.takeHeldUpdates() : [];
    release(entry);
    const updates = replay?.updates ?? streamed.map(({ update }) => update);
    const compactedReplay = replayEvents(entry.sessionId, updates, Date.now());
    return { replay: { compactedReplay, ...replay?.page }, liveJournal: [], hint };
  }
}

/** While a turn runs: what was before it from disk, and the turn by its own events. */
async function showRunning(entry: SessionEntry, turn: Turn, asked: Asked): Promise<Shown> {
  if (asked.action === 'resume') return { replay: undefined, liveJournal: [], hint: undefined };
  const { sessionId, cwd, channel } = entry;
  let updates: readonly unknown[] = [];
  try {
    const saved = await channel.connection.request(
      methods.loadUpdates,
      { sessionId, cwd },
      { deadlineMs: RESTORE_DEADLINE_MS },
    );
    updates = before(saved.updates, turn.startedAt);
  } catch (error) {
    if (!isMethodNotFound(error)) throw error;
  }
  const page = asked.pageSize === undefined ? { updates } : lastRecords(updates, asked.pageSize);
  const { updates: shown, ...rest } = page;
  return {
    replay: { compactedReplay: replayEvents(sessionId, shown, Date.now()), ...rest },
    liveJournal: entry.events.since(turn.firstEventId),
    hint: undefined,
  };
}

/** Publishes what came during a load. */
function release(entry: SessionEntry): void {
  for (const update of entry.takeHeldUpdates()) entry.update(update);
}
