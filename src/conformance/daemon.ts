import { setTimeout as pause } from 'node:timers/promises';
import { Events } from './events.ts';
import { type Answer, type Call, call } from './http.ts';
import { descendants, killAll } from './processes.ts';
import type { Exit, Program } from './program.ts';
import { expect, expectEqual, Unmet, within } from './verdicts.ts';
import type { Json } from './wire.ts';

/** A session as a client has it. */
export interface Session {
  readonly id: string;
  readonly clientId: string;
}

/** A question that waits, as the status shows it. */
export interface Waiting extends Session {
  readonly requestId: string;
  /** Its entry of `pendingInteractions`. */
  readonly interaction: Json;
  /** The answer to the prompt that led to it. */
  readonly admitted: Answer;
}

/** How often a status is asked for, in ms. */
const POLL = 25;

/** A running daemon and the kit's client of its routes. */
export class Daemon {
  readonly url: string;
  /** Undefined for one that the kit did not start. */
  readonly program: Program | undefined;
  /** What it printed before it answered. */
  readonly greeting: string;
  /** The workspace; undefined for its own. */
  readonly cwd: string | undefined;
  readonly #patience: number;

  constructor(at: { url: string; program?: Program; greeting?: string; cwd?: string }, patience: number) {
    this.url = at.url.replace(/\/+$/, '');
    this.program = at.program;
    this.greeting = at.greeting ?? '';
    this.cwd = at.cwd;
    this.#patience = patience;
  }

  send(sent: Call): Promise<Answer> {
    return call(this.url, sent, this.#patience);
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.send({ method: 'GET', path, headers });
  }

  post(path: string, body?: unknown, clientId?: string): Promise<Answer> {
    return this.send({ method: 'POST', path, headers: clientHeader(clientId), body });
  }

  delete({ id, clientId }: Session): Promise<Answer> {
    return this.send({ method: 'DELETE', path: `/session/${id}`, headers: clientHeader(clientId) });
  }

  /** A session of its own. */
  async newSession(): Promise<Session> {
    const answer = await this.post('/session', { ...this.place, sessionScope: 'thread' });
    const { sessionId, clientId } = answer.body ?? {};
    expect(answer.status === 200 && sessionId && clientId, 'it opens no session', answer);
    return { id: sessionId, clientId };
  }

  load(sessionId: string, clientId?: string, more: object = {}): Promise<Answer> {
    return this.post(`/session/${sessionId}/load`, { ...this.place, ...more }, clientId);
  }

  resume(sessionId: string, clientId?: string): Promise<Answer> {
    return this.post(`/session/${sessionId}/resume`, this.place, clientId);
  }

  prompt({ id, clientId }: Session, text: string, meta?: object): Promise<Answer> {
    const body = { prompt: [{ type: 'text', text }], ...(meta && { _meta: meta }) };
    return this.post(`/session/${id}/prompt`, body, clientId);
  }

  async status(sessionId: string): Promise<Answer> {
    return await this.get(`/session/${sessionId}/status`);
  }

  vote({ id, requestId, clientId }: Omit<Waiting, 'interaction' | 'admitted'>, vote: unknown): Promise<Answer> {
    return this.post(`/session/${id}/permission/${requestId}`, vote, clientId === '' ? undefined : clientId);
  }

  /** Starts a turn; resolves with the answer that it was admitted. */
  async start(session: Session, text: string): Promise<Answer> {
    const admitted = await this.prompt(session, text);
    expectEqual(admitted.status, 202, 'the status', admitted);
    return admitted;
  }

  /** Has a session ask; resolves when the question waits. */
  async ask(session: Session, text: string): Promise<Waiting> {
    const admitted = await this.start(session, text);
    return { ...session, admitted, ...(await this.waiting(session.id)) };
  }

  /** The question that waits in a session, as soon as one does; of other id than `not`. */
  async waiting(sessionId: string, not?: string): Promise<Pick<Waiting, 'requestId' | 'interaction'>> {
    const answer = await this.#until(
      sessionId,
      ({ pendingInteractions: [one] = [] }) => one !== undefined && one.requestId !== not,
      'a question that waits',
    );
    const [interaction] = answer.body.pendingInteractions;
    return { interaction, requestId: interaction.requestId };
  }

  /** Resolves when a session has nothing to do. */
  async idle(sessionId: string): Promise<Answer> {
    return await this.#until(sessionId, ({ hasActivePrompt }) => hasActivePrompt === false, 'the end of the turn');
  }

  /** Subscribes to a session; `lastEventId` has the events after that one sent again. */
  events(sessionId: string, more: { lastEventId?: string | number; query?: string } = {}): Promise<Events> {
    const headers = more.lastEventId === undefined ? {} : { 'last-event-id': String(more.lastEventId) };
    return Events.open(this.url, `/session/${sessionId}/events${more.query ?? ''}`, headers, this.#patience);
  }

  /** The processes that a daemon which the kit started has started. */
  async children(): Promise<number[]> {
    const { program } = this;
    // The id of one that has ended may be another's by now.
    return program?.pid === undefined || program.exit !== undefined ? [] : await descendants(program.pid);
  }

  /** Kills the agents of the daemon, not the daemon. */
  async killChildren(): Promise<void> {
    killAll(await this.children());
  }

  /** Ends it and all that it started at once, as a crash of the machine does. */
  async kill(): Promise<void> {
    const children = await this.children();
    await this.program?.kill();
    killAll(children);
  }

  async stop(signal: NodeJS.Signals, patience = this.#patience): Promise<Exit> {
    const { program } = this;
    if (program === undefined) throw new Unmet('the kit did not start this daemon');
    program.signal(signal);
    return await within(program.exited, patience, `the end of the daemon after ${signal}`);
  }

  /** What names the workspace in a body. */
  get place(): object {
    return this.cwd === undefined ? {} : { cwd: this.cwd };
  }

  async #until(sessionId: string, is: (status: Json) => boolean, what: string): Promise<Answer> {
    const deadline = performance.now() + this.#patience;
    for (;;) {
      const answer = await this.status(sessionId);
      expectEqual(answer.status, 200, 'the status of GET /session/:id/status', answer);
      if (is(answer.body ?? {})) return answer;
      expect(performance.now() < deadline, `${what} did not come within ${this.#patience / 1000} s`, answer);
      await pause(POLL);
    }
  }
}

const clientHeader = (clientId: string | undefined): Record<string, string> =>
  clientId === undefined ? {} : { 'x-qwen-client-id': clientId };
