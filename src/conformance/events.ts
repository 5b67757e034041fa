import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { createParser } from 'eventsource-parser';
import { expect, Unmet, within } from './verdicts.ts';
import { type Json, parse } from './wire.ts';

/** One server-sent event. */
export interface Event {
  /** Of the stream; undefined for one without. */
  readonly id: string | undefined;
  readonly type: string;
  /** Parsed. */
  readonly value: Json;
  /** What it is about: `data` in `value`. */
  readonly data: Json;
  readonly text: string;
}

const MOST_EVENTS = 100_000;
const LONGEST_EVENT = 64 * 1024 * 1024;

/** A subscription to a session's events; all that came is kept. */
export class Events {
  readonly seen: Event[] = [];
  /** What the stream told about connecting again, in ms. */
  retry: number | undefined;
  readonly headers: Json;
  readonly #outgoing: ClientRequest;
  readonly #patience: number;
  readonly #watching = new Set<() => void>();
  #ended = false;

  private constructor(outgoing: ClientRequest, response: IncomingMessage, patience: number) {
    this.#outgoing = outgoing;
    this.#patience = patience;
    this.headers = response.headers;
    const parser = createParser({
      onEvent: ({ id, event = 'message', data }) => this.#take(id, event, data),
      onRetry: (ms) => {
        this.retry = ms;
      },
      maxBufferSize: LONGEST_EVENT,
    });
    response.setEncoding('utf8').on('data', (text: string) => parser.feed(text));
    // A daemon that is killed tears the connection; that is an end, too.
    response.on('error', () => {});
    response.once('close', () => {
      this.#ended = true;
      this.#look();
    });
  }

  /** Throws `Unmet` where the answer is none of status 200. */
  static async open(
    url: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    patience: number,
  ): Promise<Events> {
    const outgoing = httpRequest(`${url}${path}`, {
      headers: { accept: 'text/event-stream', ...headers },
      agent: false,
    });
    const opened = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve).on('error', reject).end();
    });
    const response = await within(opened, patience, `the answer to GET ${path}`).catch((error: unknown) => {
      outgoing.destroy();
      throw error;
    });
    if (response.statusCode !== 200) outgoing.destroy();
    expect(response.statusCode === 200, `GET ${path} is answered with ${response.statusCode}, not 200`);
    return new Events(outgoing, response, patience);
  }

  /** The first event of this type, and which `fits`, of those after `after` or of all; waits for it. */
  async next(type: string, wait: { readonly after?: Event; fits?(event: Event): boolean } = {}): Promise<Event> {
    const fits = (event: Event) => event.type === type && (wait.fits?.(event) ?? true);
    const found = () => this.seen.slice(wait.after === undefined ? 0 : this.seen.indexOf(wait.after) + 1).find(fits);
    return await this.#until(found, `an event ${type}`);
  }

  /** Resolves when the stream has ended. */
  async end(): Promise<void> {
    await this.#until(() => this.#ended || undefined, 'the end of the events');
  }

  /** All text that the agent said, in the turn of this prompt or in all. */
  said(promptId?: string): string {
    const of = this.seen.filter(
      ({ type, value }) => type === 'session_update' && [undefined, value.promptId].includes(promptId),
    );
    return of
      .map(({ data }) => (data?.update?.sessionUpdate === 'agent_message_chunk' ? data.update.content?.text : ''))
      .join('');
  }

  of(type: string): Event[] {
    return this.seen.filter((event) => event.type === type);
  }

  close(): void {
    this.#outgoing.destroy();
  }

  async #until<T>(found: () => T | undefined, what: string): Promise<T> {
    const evidence = () => this.seen.at(-1);
    let stop = () => {};
    const coming = new Promise<T>((resolve, reject) => {
      const look = () => {
        const value = found();
        if (value !== undefined) resolve(value);
        else if (this.#ended) reject(new Unmet(`${what} did not come: the stream ended`, evidence()));
      };
      stop = () => this.#watching.delete(look);
      this.#watching.add(look);
      look();
    });
    try {
      return await within(coming, this.#patience, what);
    } catch (error) {
      throw error instanceof Unmet && error.frame === undefined ? new Unmet(error.message, evidence()) : error;
    } finally {
      stop();
    }
  }

  #take(id: string | undefined, type: string, text: string): void {
    const value = parse(text);
    this.seen.push({ id, type, value, data: value?.data, text: `event ${type}, id ${id ?? 'none'}: ${text}` });
    if (this.seen.length > MOST_EVENTS) this.close();
    this.#look();
  }

  #look(): void {
    for (const look of [...this.#watching]) look();
  }
}
