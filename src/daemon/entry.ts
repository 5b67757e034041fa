import type * as acp from '@agentclientprotocol/sdk';
import { HAS_RUNNING_BACKGROUND_TASKS } from '../meta/keys.ts';
import { type Meta, own } from '../meta/meta.ts';
import type { Channel } from './channel.ts';
import { Clients } from './clients.ts';
import { type EventContext, EventLog } from './events.ts';
import type { DaemonEvent } from './ports.ts';
import { PromptQueue } from './queue.ts';

export type TurnKind = 'ordinary' | 'restore' | 'continue';

/** One prompt on its way through the daemon. */
export interface Turn {
  readonly promptId: string;
  readonly kind: TurnKind;
  readonly prompt: readonly acp.ContentBlock[];
  /** What of the caller's own `_meta` goes on. */
  readonly meta: Meta;
  readonly originatorClientId: string | undefined;
  /** It had to wait for others. */
  waited: boolean;
  /** Number of the first event that may be its own, and when it began in milliseconds; 0 while it waits. */
  firstEventId: number;
  startedAt: number;
  /** A person ended it. */
  cancelled: boolean;
}

/** What the child said of a session's settings: `modes`, `models`, `configOptions`, and `_meta` without the hint. */
export type SessionState = Readonly<Record<string, unknown>>;

/** How many prompts a session may hold, the one that runs included. */
export const MAX_PENDING_PROMPTS = 5;

/** A session that is live in the child, as the daemon sees it. */
export class SessionEntry {
  readonly sessionId: string;
  readonly cwd: string;
  readonly channel: Channel;
  readonly createdAt: string = new Date().toISOString();
  readonly clients = new Clients();
  readonly events = new EventLog();
  readonly queue = new PromptQueue<Turn>(MAX_PENDING_PROMPTS);
  updatedAt: string | undefined;
  displayName: string | undefined;
  state: SessionState = {};
  hasRunningBackgroundTasks: boolean | undefined;
  /** What keeps it busy besides prompts, once the child has reported that. */
  holds: number | undefined;
  hasTurnError = false;
  /** Resolves when what the last turn left behind is cleaned up. */
  settled: Promise<void> = Promise.resolve();
  /** While it is being ended: settles when that is over, well or not. */
  closing: Promise<void> | undefined;
  /** Updates that come during a load, whose replay has to stand before them. */
  #held: acp.SessionNotification[] | undefined;

  constructor(sessionId: string, cwd: string, channel: Channel) {
    this.sessionId = sessionId;
    this.cwd = cwd;
    this.channel = channel;
  }

  get activeTurn(): Turn | undefined {
    return this.queue.active?.prompt;
  }

  /** Neither a prompt nor anything of the child's own runs in it. */
  get isIdle(): boolean {
    return this.queue.isIdle && !this.holds;
  }

  publish(type: string, data: unknown, context?: EventContext): DaemonEvent {
    return this.events.publish(type, data, context);
  }

  /** Of the turn that runs, so that subscribers can tell whose words these are. */
  update(params: acp.SessionNotification): void {
    // A turn's updates are no part of a replay, and belong before what the turn asks.
    if (this.#held && !this.activeTurn) this.#held.push(params);
    else this.publish('session_update', params, this.activeTurn);
  }

  holdUpdates(): void {
    this.#held ??= [];
  }

  /** What came meanwhile; from now on updates are published as they come. */
  takeHeldUpdates(): readonly acp.SessionNotification[] {
    const held = this.#held ?? [];
    this.#held = undefined;
    return held;
  }

  adoptState(state: SessionState): void {
    this.state = shared(state);
    const running = own(state['_meta'], HAS_RUNNING_BACKGROUND_TASKS);
    if (typeof running === 'boolean') this.hasRunningBackgroundTasks = running;
  }

  reportWork(hasRunningBackgroundTasks: boolean, holds: number): void {
    this.hasRunningBackgroundTasks = hasRunningBackgroundTasks;
    this.holds = holds;
  }
}

let lastState: { readonly text: string; readonly state: SessionState } | undefined;

/** The sessions of one child have the same settings mostly; ten thousand need no copies. */
function shared(state: SessionState): SessionState {
  const text = JSON.stringify(state);
  if (lastState?.text !== text) lastState = { text, state };
  return lastState.state;
}
