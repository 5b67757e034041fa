import { setImmediate } from 'node:timers/promises';
import { createContext, Script } from 'node:vm';
import { refuseArgument } from './arguments.ts';

/** What one slice may take, in ms. A sound pattern takes a hundredth of it. */
const SLICE_MS = 250;
/** In UTF-16 units; the other work of the process waits no longer than a slice. */
const SLICE_LENGTH = 256 * 1024;

/** The sandbox is no safety of its own: it is the one way to stop an expression that would go on for ever. */
const SEARCH = new Script('texts.flatMap((text, index) => pattern.test(text) ? [index] : [])');

/** A regular expression that somebody else wrote, which must not hold up the process. */
export class GuardedPattern {
  readonly #context: { texts: readonly string[]; readonly pattern: RegExp };

  constructor(pattern: RegExp) {
    this.#context = { texts: [], pattern };
    createContext(this.#context);
  }

  /** The indices of the texts in which it finds something. Throws `ToolFault` when it takes too long, the signal's reason on abort. */
  async find(texts: readonly string[], signal: AbortSignal): Promise<number[]> {
    const found: number[] = [];
    for (let from = 0; from < texts.length; ) {
      let to = from;
      for (let length = 0; to < texts.length && length < SLICE_LENGTH; to++) length += (texts[to] as string).length + 1;
      signal.throwIfAborted();
      for (const index of this.#findIn(texts.slice(from, to))) found.push(from + index);
      from = to;
      if (from < texts.length) await setImmediate();
    }
    return found;
  }

  #findIn(texts: readonly string[]): number[] {
    this.#context.texts = texts;
    try {
      return SEARCH.runInContext(this.#context, { timeout: SLICE_MS });
    } catch (error) {
      // It comes from another world, whose errors are not instances of ours.
      const { code, message } = error as { code?: unknown; message?: unknown };
      if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') {
        refuseArgument('The pattern takes too long. Repeat fewer things inside of repetitions.');
      }
      refuseArgument(`The pattern cannot be used: ${message}`);
    } finally {
      this.#context.texts = [];
    }
  }
}
