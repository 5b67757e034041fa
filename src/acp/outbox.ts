import type { Writable } from 'node:stream';
import { HangUpError } from './errors.ts';

type Piece = string | Uint8Array;

/** What is pushed within one tick goes out as one write, unless it is more than this, in characters or bytes. */
const MAX_COALESCED = 64 * 1024;

const READY: Promise<void> = Promise.resolve();

/** Pushes many small pieces into a stream as few large writes, in order, and says when the stream can take more. */
export class Outbox {
  readonly #output: Writable;
  readonly #onBroken: (reason: HangUpError) => void;
  #pending: Piece[] = [];
  #pendingSize = 0;
  #scheduled = false;
  #drain: Drain | undefined;
  #closed: HangUpError | undefined;

  /** `onBroken` is called once if the stream fails or is closed by someone else. */
  constructor(output: Writable, onBroken: (reason: HangUpError) => void) {
    this.#output = output;
    this.#onBroken = onBroken;
    output
      .on('error', (error) => this.#break(error))
      .on('close', () => this.#break(new Error('the output was closed')))
      .on('drain', () => this.#settleDrain());
  }

  /** How much the stream's other end has not taken yet, in characters or bytes; 0 once closed, as nothing is added then. */
  get backlog(): number {
    // Whoever waits for less of it waits for `ready()`, which holds nobody up after the end: they would never yield.
    return this.#closed ? 0 : this.#pendingSize + this.#output.writableLength;
  }

  /** Why nothing can be sent any more; undefined while something can. */
  get closed(): HangUpError | undefined {
    return this.#closed;
  }

  /** Whether the stream can take more without waiting. */
  get writable(): boolean {
    return this.#closed === undefined && this.#drain === undefined;
  }

  /** Resolves when the stream can take more; rejects once it is closed or broken. */
  ready(): Promise<void> {
    return this.#drain?.promise ?? READY;
  }

  /** Pieces of one call stay adjacent. Resolves and rejects as `ready()`. */
  push(...pieces: readonly Piece[]): Promise<void> {
    if (this.#closed) return settled(this.#closed);
    for (const piece of pieces) {
      this.#pending.push(piece);
      this.#pendingSize += piece.length;
    }
    if (this.#pendingSize >= MAX_COALESCED) this.#flush();
    else this.#schedule();
    return this.ready();
  }

  /** Resolves when everything pushed so far has left this process, or never will. */
  async flushed(): Promise<void> {
    this.#flush();
    if (this.#closed) return;
    await new Promise<void>((resolve) => this.#output.write('', () => resolve()));
  }

  /** Writes what is pending and ends the stream; later pushes are rejected with `reason`. */
  close(reason: HangUpError): void {
    if (this.#closed) return;
    this.#flush();
    this.#closed = reason;
    this.#settleDrain(reason);
    this.#output.end();
  }

  // After the tick's promise callbacks too, so that a loop that awaits each push is one write as well.
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(this.#flushScheduled);
  }

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  #flush(): void {
    if (this.#pending.length === 0 || this.#closed) return;
    const pieces = this.#pending;
    this.#pending = [];
    this.#pendingSize = 0;
    this.#output.cork();
    for (const run of joined(pieces)) this.#output.write(run);
    this.#output.uncork();
    if (this.#output.writableNeedDrain) this.#drain ??= new Drain();
  }

  #break(cause: Error): void {
    if (this.#closed) return;
    // Whoever waits to send tells the end of the connection from a fault of its own by this.
    this.#closed = new HangUpError('transport', 'the peer is gone', { cause });
    this.#pending = [];
    this.#pendingSize = 0;
    this.#settleDrain(this.#closed);
    this.#onBroken(this.#closed);
  }

  #settleDrain(error?: Error): void {
    this.#drain?.settle(error);
    this.#drain = undefined;
  }
}

class Drain {
  readonly promise: Promise<void>;
  #resolve: (value: Promise<void>) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.promise.catch(ignore);
  }

  settle(error: Error | undefined): void {
    this.#resolve(error ? settled(error) : READY);
  }
}

/** A rejection of which nobody need take notice: the connection reports its end by itself. */
function settled(error: Error): Promise<void> {
  const promise = Promise.reject(error);
  promise.catch(ignore);
  return promise;
}

function ignore(): void {}

/** Adjacent strings as one, so that they are encoded and written at once. */
function joined(pieces: readonly Piece[]): readonly Piece[] {
  const runs: Piece[] = [];
  let texts: string[] = [];
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      texts.push(piece);
      continue;
    }
    if (texts.length > 0) runs.push(texts.join(''));
    texts = [];
    runs.push(piece);
  }
  if (texts.length > 0) runs.push(texts.join(''));
  return runs;
}
