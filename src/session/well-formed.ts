/** Only those that have lost their other half. */
const HALVES = /\p{Surrogate}/gu;

/**
 * A JSON value whose strings have U+FFFD for half characters, as a text has that was cut by length: strict parsers of
 * clients, and providers, refuse the whole message for one. Pure.
 */
export function wellFormed<T>(value: T): T;
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(HALVES, '\uFFFD');
  if (Array.isArray(value)) return value.map((item) => wellFormed(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, wellFormed(item)]));
}
