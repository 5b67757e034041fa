import type { NamePattern } from './name-pattern.ts';

export interface GrepQuery {
  /** A regular expression for one line, without regard to case. */
  readonly pattern: string;
  /** For paths below the folder that is searched. */
  readonly names: NamePattern | undefined;
}

/** Larger files are not searched. */
export const MAX_GREP_BYTES = 10 * 1024 * 1024;
/** In UTF-16 units; longer lines are not searched. */
export const MAX_GREP_LINE = 64 * 1024;
/** Of matching lines in one answer. */
export const MAX_LIMIT = 1000;

/** In UTF-16 units. */
const MAX_LINE = 400;
const MAX_TEXT = 32 * 1024;

/** The lines that were found, as they are shown, no more than are wanted. */
export class Matches {
  readonly lines: string[] = [];
  readonly #limit: number;
  #length = 0;
  #isFull = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** One more was found than is wanted. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** `number` counts from 1. */
  add(path: string, number: number, line: string): void {
    const text = line.replace(/\r?\n?$/, '');
    const shown = text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text;
    const entry = `${path}:${number}:${shown}`;
    if (this.lines.length === this.#limit || this.#length + entry.length > MAX_TEXT) this.#isFull = true;
    if (this.#isFull) return;
    this.#length += entry.length + 1;
    this.lines.push(entry);
  }
}
