import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished, vi } from 'vitest';
import { DaemonBridge } from '../../src/daemon/bridge.ts';
import type { Caller, DaemonEvent, ServeOptions, Subscription } from '../../src/daemon/ports.ts';
import { createLog } from '../../src/log.ts';
import { RECORDED_SCRIPT } from './peer.ts';
import { tempFolder } from './temp.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const TAP = fileURLToPath(new URL('tap-child.mjs', import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: a test looks at answers, events and frames of every form
export type Any = any;

export interface Frame {
  readonly dir: 'start' | 'to-child' | 'from-child';
  readonly argv?: readonly string[];
  readonly pid?: number;
  readonly frame?: Any;
}

/** A caller with this client id, or without one. */
export const as = (clientId?: string): Caller => ({ clientId, loopback: true });

export const TEXT = (text: string) => [{ type: 'text' as const, text }];
export const ASK = TEXT('[[ask1]] hi');
export const BLUE = { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'Blue' } } as const;

interface Extras {
  /** The child's script, in place of the tap. */
  readonly script?: string;
  /** What the scripted model plays. */
  readonly model?: object;
  readonly pingIntervalMs?: number;
}

/** A place for daemons that come one after the other: the same workspace, sessions and journal. */
export class Place {
  readonly home = tempFolder();
  readonly cwd = realpathSync(tempFolder());
  readonly tap = join(this.home, 'tap.jsonl');
  readonly stderr: string[] = [];

  /** A daemon's core with its child behind a tap, shut down when the test ends. */
  bridge(options: Partial<ServeOptions> & Extras = {}): DaemonBridge {
    const { script = TAP, model = RECORDED_SCRIPT, pingIntervalMs, ...serve } = options;
    const modelScript = join(this.home, 'script.json');
    writeFileSync(modelScript, JSON.stringify(model));
    vi.stubEnv('QWEN_HOME', this.home);
    vi.stubEnv('TAP_LOG', this.tap);
    vi.stubEnv('TAP_CHILD', CLI);
    onTestFinished(() => void vi.unstubAllEnvs());
    const bridge = new DaemonBridge(
      { ...DEFAULTS, cwd: this.cwd, childArgs: ['--script', modelScript], ...serve },
      {
        version: '0.0.0',
        log: createLog('silent'),
        script,
        ...(pingIntervalMs !== undefined && { pingIntervalMs }),
        onChildStderr: (line) => this.stderr.push(line),
      },
    );
    onTestFinished(() => bridge.shutdown());
    return bridge;
  }

  /** Leaves a session behind whose question nobody has answered. */
  async dangling(): Promise<{ readonly sessionId: string }> {
    const bridge = this.bridge();
    const { sessionId } = await bridge.createSession({ sessionScope: 'thread' }, as());
    const listener = await Listener.of(bridge, sessionId);
    await bridge.prompt(sessionId, ASK, undefined, as());
    await listener.event('permission_request');
    await bridge.shutdown();
    return { sessionId };
  }

  /** The process id of the last child's tap. */
  childPid(): number {
    return Number(this.frames()[0]?.pid);
  }

  killChild(): void {
    process.kill(-this.childPid(), 'SIGKILL');
  }

  /** What went over the pipe, of the last child where there were several. */
  frames(): Frame[] {
    if (!existsSync(this.tap)) return [];
    const lines = readFileSync(this.tap, 'utf8').split('\n');
    const frames = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Frame);
    return frames.slice(frames.findLastIndex(({ dir }) => dir === 'start'));
  }

  /** The requests and notifications of one method that the daemon sent. */
  sent(method: string): Any[] {
    return this.frames().flatMap(({ dir, frame }) => (dir === 'to-child' && frame.method === method ? [frame] : []));
  }
}

const DEFAULTS: Omit<ServeOptions, 'cwd' | 'childArgs'> = {
  port: 0,
  hostname: '127.0.0.1',
  restoreAskUserQuestion: true,
  experimentalLsp: false,
  permissionStrategy: undefined,
  consensusQuorum: undefined,
  permissionResponseTimeoutMs: 0,
  initializeTimeoutMs: 10_000,
  token: undefined,
  requireAuth: false,
  allowOrigins: [],
  maxSessions: 32,
  maxConnections: 16,
};

/** A subscriber that keeps what it has seen. */
export class Listener {
  readonly events: DaemonEvent[] = [];
  /** Resolves when the stream is over. */
  readonly over: Promise<void>;
  readonly #subscription: Subscription;
  readonly #stop = new AbortController();
  readonly #changes = new Set<() => void>();
  #isOver = false;

  constructor(subscription: Subscription) {
    this.#subscription = subscription;
    this.over = this.#run();
    onTestFinished(() => this.#stop.abort());
  }

  static async of(
    bridge: DaemonBridge,
    sessionId: string,
    options: { readonly lastEventId?: number; readonly snapshot?: boolean } = {},
  ): Promise<Listener> {
    return new Listener(await bridge.subscribe(sessionId, { snapshot: false, ...options }));
  }

  /** The first event of this type after the first `from` events; waits for it. */
  async event(type: string, from = 0): Promise<DaemonEvent & { readonly data: Any }> {
    for (;;) {
      const found = this.events.slice(from).find((event) => event.type === type);
      if (found) return found;
      if (this.#isOver) throw new Error(`the events ended without ${type}: ${this.types().join(' ')}`);
      await new Promise<void>((resolve) => this.#changes.add(resolve));
    }
  }

  /** What came after the first `from` events; the list of commands, which comes when it comes, left out. */
  types(from = 0): string[] {
    return this.events
      .slice(from)
      .map(({ type, data }) => (type === 'session_update' ? `${type} ${(data as Any).update.sessionUpdate}` : type))
      .filter((type) => type !== 'session_update available_commands_update');
  }

  async #run(): Promise<void> {
    for (;;) {
      const bytes = await this.#subscription.next(this.#stop.signal);
      if (bytes) this.events.push(...decode(bytes));
      else this.#isOver = true;
      for (const changed of this.#changes) changed();
      this.#changes.clear();
      if (!bytes) return;
    }
  }
}

/** The events in blocks of server-sent events, whose ids and types must say the same as their data. */
export function decode(bytes: Uint8Array): DaemonEvent[] {
  const blocks = Buffer.from(bytes).toString('utf8').split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const fields = new Map(
      block.split('\n').map((line): [string, string] => {
        const at = line.indexOf(': ');
        return [line.slice(0, at), line.slice(at + 2)];
      }),
    );
    const event = JSON.parse(fields.get('data') ?? '') as DaemonEvent;
    const id = fields.get('id');
    if (event.type !== fields.get('event') || event.id !== (id === undefined ? undefined : Number(id))) {
      throw new Error(`a block contradicts its data: ${block}`);
    }
    return event;
  });
}
