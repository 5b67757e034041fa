const HALF = /\p{Surrogate}/u;
const HALVES = /\p{Surrogate}/gu;

/** Whether no character of it is cut in half. `\p{Surrogate}` finds only halves that have lost their other one. */
export const isWellFormed = (text: string): boolean => !HALF.test(text);

/**
 * A JSON value whose strings have U+FFFD for half characters, as a text has that was cut by length: strict parsers of
 * clients, and providers, refuse the whole message for one. Pure.
 */
export function wellFormed<T>(value: T): T;
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return isWellFormed(value) ? value : value.replace(HALVES, '\uFFFD');
  if (Array.isArray(value)) return value.map((item) => wellFormed(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, wellFormed(item)]));
}
