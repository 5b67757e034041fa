import { ProviderFault } from '../session/faults.ts';

/** What is known of a failed request beside the error. */
export interface FailedRequest {
  /** The variable that holds the key or the project. */
  readonly variable: string;
  /** Is never repeated in a message. */
  readonly apiKey?: string;
  /** Whether the provider had begun its reply. */
  readonly started: boolean;
}

/** What a person can do about a conversation that is too long. */
export const TOO_LONG = 'The conversation is too long for the model: send /compress, or begin a new session.';

/** A Retry-After header, seconds or a date, in milliseconds from `now`. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null || header.trim() === '') return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, Math.ceil(seconds * 1000));
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

const CERTIFICATE = /CERT|UNABLE_TO_VERIFY|ERR_TLS/;

/** The fault of a request that got no answer, or only the beginning of one. */
export function connectionFault(error: unknown, request: FailedRequest): ProviderFault {
  const deepest = deepestError(error);
  const said = wordsOf(deepest instanceof Error ? deepest.message || deepest.name : String(deepest), request);
  const fault = (kind: ProviderFault['kind'], message: string) => new ProviderFault(kind, message, { cause: error });
  if (request.started) return fault('broken_stream', `The model's reply broke off: ${said}`);
  if (deepest instanceof SyntaxError) {
    return fault('broken_stream', `The provider sent something that is no reply: ${said}`);
  }
  const code = deepest instanceof Error && 'code' in deepest ? String(deepest.code) : '';
  // Neither heals by asking again.
  if (CERTIFICATE.test(code)) {
    return fault('bad_request', `The provider's certificate is not trusted; see NODE_EXTRA_CA_CERTS: ${said}`);
  }
  if (code === 'ERR_INVALID_URL') return fault('bad_request', `The provider's address is no URL: ${said}`);
  return fault('server', `The provider cannot be reached: ${said}`);
}

/** `fetch` hides what happened two causes deep, and behind the addresses that it tried. */
function deepestError(error: unknown): unknown {
  let deepest = error;
  for (let depth = 0; depth < 6; depth += 1) {
    if (deepest instanceof AggregateError && deepest.errors.length > 0) deepest = deepest.errors[0];
    else if (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
    else break;
  }
  return deepest;
}

const LONGEST_MESSAGE = 500;

/** A provider's words on one line, shortened, without the key. */
export function wordsOf(message: string, { apiKey }: Pick<FailedRequest, 'apiKey'>): string {
  const text = String(message);
  const clean = apiKey ? text.replaceAll(apiKey, '[key]') : text;
  const line = clean.replace(/\s+/g, ' ').trim();
  return line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE)}…` : line;
}
