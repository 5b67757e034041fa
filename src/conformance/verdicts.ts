/** A message as it passed, one line of text. */
export interface Evidence {
  readonly text: string;
}

/** The requirement is not met; `frame` is the message that shows it. */
export class Unmet extends Error {
  override readonly name = 'Unmet';
  readonly frame: string | undefined;

  constructor(reason: string, evidence?: Evidence | object) {
    super(reason);
    this.frame = evidence === undefined ? undefined : textOf(evidence);
  }
}

/** Nothing can be said: the agent offers a choice that the check is not about. */
export class NotSaid extends Error {
  override readonly name = 'NotSaid';
  readonly status: 'skipped' | 'not advertised';

  constructor(status: 'skipped' | 'not advertised', reason: string) {
    super(reason);
    this.status = status;
  }
}

function textOf(evidence: Evidence | object): string {
  return 'text' in evidence && typeof evidence.text === 'string' ? evidence.text : JSON.stringify(evidence);
}

/** Throws `Unmet` unless the condition holds. */
export function expect(condition: unknown, reason: string, evidence?: Evidence | object): asserts condition {
  if (!condition) throw new Unmet(reason, evidence);
}

/** Throws `Unmet` unless the two are equal as JSON. */
export function expectEqual(actual: unknown, wanted: unknown, what: string, evidence?: Evidence | object): void {
  const [is, should] = [actual, wanted].map((value) => JSON.stringify(value) ?? 'absent') as [string, string];
  if (is !== should) throw new Unmet(`${what} is ${shorten(is, 200)}, not ${shorten(should, 200)}`, evidence);
}

/** At most so many characters of a text, on one line. */
export function shorten(text: string, most: number): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** Settles as the promise does, or throws `Unmet` when it has not after `ms`. */
export async function within<T>(promise: Promise<T>, ms: number, what: string, evidence?: Evidence): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unmet(`${what} did not come within ${ms / 1000} s`, evidence)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
