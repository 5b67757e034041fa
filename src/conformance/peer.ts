import { setTimeout as pause } from 'node:timers/promises';
import { BARRIER } from './names.ts';
import type { Program } from './program.ts';
import { expect, Unmet, within } from './verdicts.ts';
import { type Frame, isObject, isReply, isRequest, type Json, parse, readLines } from './wire.ts';

/** The agent's answer to a request. */
export interface Reply {
  readonly frame: Frame;
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Json };
}

/** A request of the agent that waits for the kit's answer. */
export interface Asked {
  readonly id: Json;
  readonly params: Json;
  readonly frame: Frame;
  answer(result: Json): void;
  refuse(code: number, message: string): void;
}

const MOST_FRAMES = 200_000;
/** In ms. */
const EXIT_GRACE = 300;

/**
 * A client that speaks bytes: it sees every line as it was, and can send what no library would. It answers the agent's
 * requests with -32601, but permission requests wait for the check.
 */
export class Peer {
  /** Everything that passed, in order. */
  readonly frames: Frame[] = [];
  /** What stood on stdout after the last newline. */
  rest = '';
  readonly #program: Program;
  readonly #patience: number;
  readonly #watching = new Set<() => void>();
  readonly #taken = new Set<Frame>();
  #nextId = 1;
  #closed = false;

  /** `patience`: how long one wait may take, in ms. */
  constructor(program: Program, patience: number) {
    this.#program = program;
    this.#patience = patience;
    readLines(
      program.stdout,
      (line) => this.#take(line),
      (rest) => {
        this.rest = rest;
        // An end of the program says more than an end of its stdout, and comes a little later.
        void Promise.race([program.exited, pause(EXIT_GRACE)]).then(() => {
          this.#closed = true;
          this.#look();
        });
      },
    );
  }

  /** Sends a message as one line. */
  send(value: Json): Frame {
    return this.write(`${JSON.stringify(value)}\n`);
  }

  /** Sends text or bytes as they are. */
  write(data: string | Uint8Array): Frame {
    const text = (typeof data === 'string' ? data : Buffer.from(data).toString('utf8')).trimEnd();
    const frame: Frame = { dir: 'out', text, value: parse(text), at: performance.now() };
    this.frames.push(frame);
    this.#program.stdin.write(data);
    return frame;
  }

  /** Sends a request under an id of its own; resolves with the answer, an error too. */
  async request(method: string, params?: Json, patience = this.#patience): Promise<Reply> {
    return await this.ask(this.freshId(), method, params, patience);
  }

  /** Sends a request under this id. */
  async ask(id: Json, method: string, params?: Json, patience = this.#patience): Promise<Reply> {
    const sent = this.send({ jsonrpc: '2.0', id, method, ...(params !== undefined && { params }) });
    return await this.reply(id, `the answer to ${method}`, { after: sent, patience });
  }

  /** The answer to a request that was sent under this id. */
  async reply(id: Json, what: string, wait: Wait = {}): Promise<Reply> {
    const frame = await this.next((one) => isReply(one) && one.value.id === id, what, wait);
    const { result, error } = frame.value;
    return { frame, ...(result !== undefined && { result }), ...(error !== undefined && { error }) };
  }

  /** Sends a request; resolves with its result and throws `Unmet` for an error. */
  async call(method: string, params?: Json, patience = this.#patience): Promise<Json> {
    const { error, result, frame } = await this.request(method, params, patience);
    expect(error === undefined && isObject(result), `${method} was refused or has no result`, frame);
    return result;
  }

  notify(method: string, params?: Json): Frame {
    return this.send({ jsonrpc: '2.0', method, ...(params !== undefined && { params }) });
  }

  freshId(): number {
    this.#nextId += 1;
    return this.#nextId;
  }

  /** The first frame that fits, of those from the agent after `after`, or of all; waits for it. */
  async next(fits: (frame: Frame) => boolean, what: string, wait: Wait = {}): Promise<Frame> {
    let from = wait.after === undefined ? 0 : this.frames.indexOf(wait.after) + 1;
    return await within(
      new Promise<Frame>((resolve, reject) => {
        const look = () => {
          for (; from < this.frames.length; from += 1) {
            const frame = this.frames[from] as Frame;
            if (frame.dir === 'out' || !fits(frame)) continue;
            this.#watching.delete(look);
            return resolve(frame);
          }
          if (!this.#closed) return undefined;
          this.#watching.delete(look);
          return reject(new Unmet(`${what} did not come: ${this.#ending()}`, wait.after));
        };
        this.#watching.add(look);
        look();
      }),
      wait.patience ?? this.#patience,
      what,
      wait.after,
    );
  }

  /** The next permission request that no check has taken. */
  async permission(patience = this.#patience): Promise<Asked> {
    return await this.asked('session/request_permission', patience);
  }

  /** The next request of this method that no check has taken. */
  async asked(method: string, patience = this.#patience): Promise<Asked> {
    const fits = (frame: Frame) => isRequest(frame) && frame.value.method === method && !this.#taken.has(frame);
    const frame = await this.next(fits, `a ${method} request`, { patience });
    this.#taken.add(frame);
    const { id, params } = frame.value;
    return {
      id,
      params,
      frame,
      answer: (result) => this.send({ jsonrpc: '2.0', id, result }),
      refuse: (code, message) => this.send({ jsonrpc: '2.0', id, error: { code, message } }),
    };
  }

  /** Permission requests that no check has taken. */
  get unanswered(): Frame[] {
    return this.requests('session/request_permission').filter((frame) => !this.#taken.has(frame));
  }

  /** The agent's requests of a method so far. */
  requests(method: string): Frame[] {
    return this.frames.filter((frame) => isRequest(frame) && frame.value.method === method);
  }

  /** Resolves when all that the agent had to say to what was sent so far has come. */
  async barrier(): Promise<Frame> {
    return (await this.request(BARRIER, {})).frame;
  }

  #ending(): string {
    const { exit, stderr } = this.#program;
    const how = exit === undefined ? 'it closed stdout' : `it ended (${exit.signal ?? `exit code ${exit.code}`})`;
    const last = stderr.trim().split('\n').at(-1) ?? '';
    return last === '' ? how : `${how}, saying: ${last}`;
  }

  #take(text: string): void {
    const frame: Frame = { dir: 'in', text, value: parse(text), at: performance.now() };
    this.frames.push(frame);
    if (this.frames.length > MOST_FRAMES) this.#program.stdout.destroy();
    if (isRequest(frame) && !WAITING.includes(frame.value.method)) {
      const error = { code: -32601, message: 'The conformance kit does not offer this method.' };
      this.send({ jsonrpc: '2.0', id: frame.value.id, error });
    }
    this.#look();
  }

  #look(): void {
    for (const look of [...this.#watching]) look();
  }
}

/** What a check answers itself. */
const WAITING = ['session/request_permission', 'elicitation/create'];

export interface Wait {
  readonly after?: Frame;
  /** In ms. */
  readonly patience?: number;
}
