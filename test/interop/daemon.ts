import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { EventReader, type HttpAnswer, send } from '../support/daemon.ts';
import { linesOf, type Place } from './place.ts';
import { CLI, NODE_22, type Whose } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames of every form
type Json = any;

const TAP = fileURLToPath(new URL('../support/tap-child.mjs', import.meta.url));

interface Waiting {
  readonly sessionId: string;
  readonly clientId: string;
  readonly requestId: string;
  readonly events: EventReader;
}

/** One's daemon with the other's child behind a tap, on a free port. Ended with the test. */
export class MixedDaemon {
  readonly place: Place;
  readonly tap: string;
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  stdout = '';
  stderr = '';
  url = '';

  private constructor(whose: Whose, child: Whose, place: Place, args: readonly string[]) {
    this.place = place;
    this.tap = join(place.home.path, 'tap.jsonl');
    // A busy machine may take long to start the reference's child.
    const own = ['--initialize-timeout-ms', '60000', ...(whose === 'ours' ? [] : ['--no-web'])];
    this.process = spawn(
      NODE_22,
      [CLI[whose], 'serve', '--port', '0', '--restore-ask-user-question', ...own, ...args],
      { cwd: place.cwd, env: { ...place.env, QWEN_CLI_ENTRY: TAP, TAP_CHILD: CLI[child], TAP_LOG: this.tap } },
    );
    this.exited = once(this.process, 'exit').then(([code, signal]) => ({ code, signal }));
    this.process.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    onTestFinished(async () => {
      this.process.kill('SIGKILL');
      await this.exited;
    });
  }

  static async start(whose: Whose, child: Whose, place: Place, ...args: string[]): Promise<MixedDaemon> {
    const daemon = new MixedDaemon(whose, child, place, args);
    const listening = new Promise<void>((resolve) => {
      daemon.process.stdout.on('data', () => {
        daemon.url = /http:\/\/127\.0\.0\.1:\d+/.exec(daemon.stdout)?.[0] ?? '';
        if (daemon.url !== '') resolve();
      });
    });
    const failed = daemon.exited.then(({ code }) => {
      throw new Error(`the daemon ended with ${code}: ${daemon.stderr}`);
    });
    failed.catch(() => {});
    await Promise.race([listening, failed]);
    return daemon;
  }

  request(method: string, path: string, body?: unknown, clientId?: string): Promise<HttpAnswer> {
    const headers: OutgoingHttpHeaders = clientId === undefined ? {} : { 'x-qwen-client-id': clientId };
    return send(`${this.url}${path}`, method, body, headers);
  }

  get(path: string): Promise<HttpAnswer> {
    return this.request('GET', path);
  }

  post(path: string, body?: unknown, clientId?: string): Promise<HttpAnswer> {
    return this.request('POST', path, body, clientId);
  }

  /** A session of its own, with its events. */
  async open(): Promise<{ readonly sessionId: string; readonly clientId: string; readonly events: EventReader }> {
    const { status, body } = await this.post('/session', { cwd: this.place.cwd, sessionScope: 'thread' });
    if (status !== 200) throw new Error(`no session: ${status} ${JSON.stringify(body)}\n${this.stderr}`);
    return { sessionId: body.sessionId, clientId: body.clientId, events: await this.events(body.sessionId) };
  }

  /** Has a new session ask; resolves when the question waits and its call is on disk. */
  async ask(text = '[[ask]] hi'): Promise<Waiting> {
    const session = await this.open();
    await this.prompt(session.sessionId, text, session.clientId);
    const { data } = await session.events.next('permission_request');
    await until(() => this.place.text(session.sessionId).includes('functionCall'));
    return { ...session, requestId: data.requestId };
  }

  async prompt(sessionId: string, text: string, clientId: string): Promise<HttpAnswer> {
    return await this.post(`/session/${sessionId}/prompt`, { prompt: [{ type: 'text', text }] }, clientId);
  }

  load(sessionId: string, clientId?: string): Promise<HttpAnswer> {
    return this.post(`/session/${sessionId}/load`, { cwd: this.place.cwd }, clientId);
  }

  events(sessionId: string, lastEventId?: number): Promise<EventReader> {
    const headers: OutgoingHttpHeaders = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) };
    return EventReader.open(`${this.url}/session/${sessionId}/events`, headers);
  }

  /** What went over the pipe, of all children so far. */
  frames(): Json[] {
    const text = existsSync(this.tap) ? readFileSync(this.tap, 'utf8') : '';
    return linesOf(text.slice(0, text.lastIndexOf('\n') + 1));
  }

  /** Kills the child of now with everything that it started. */
  killChild(): void {
    const { pid } = this.frames().findLast(({ dir }) => dir === 'start');
    process.kill(-pid, 'SIGKILL');
  }

  async end(signal: NodeJS.Signals) {
    this.process.kill(signal);
    return await this.exited;
  }
}

/** Resolves when `is` holds; what a program of another writes to disk comes without a notice. */
export async function until(is: () => boolean, ms = 60_000): Promise<void> {
  const deadline = performance.now() + ms;
  while (!is()) {
    if (performance.now() > deadline) throw new Error(`never came true: ${is}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
