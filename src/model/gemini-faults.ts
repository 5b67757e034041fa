import { ProviderFault, type ProviderFaultKind } from '../session/faults.ts';
import { connectionFault, type FailedRequest, retryAfter, TOO_LONG, wordsOf } from './faults.ts';

/** An error that the provider answered, as an HTTP response or as an event in place of a chunk. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | null;

  constructor(status: number, body: string, retryAfter: string | null) {
    super(`HTTP ${status}`);
    this.name = 'Refusal';
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

/** Turns whatever the Google SDK, `fetch` or a stream threw into the fault that a person and the retries understand. */
export function geminiFault(error: unknown, request: FailedRequest): ProviderFault {
  if (error instanceof ProviderFault) return error;
  if (!(error instanceof Refusal)) return unanswered(error, request);
  const { status } = error;
  const body = readBody(error.body);
  const kind = kindOf(status, body);
  const said = wordsOf(body.message ?? '', request) || 'nothing';
  const retryAfterMs = retryDelay(body) ?? retryAfter(error.retryAfter, Date.now());
  const message =
    kind === 'auth'
      ? `The provider refused the credentials; check ${request.variable}. It answered ${status}: ${said}`
      : `${kind === 'context_overflow' ? `${TOO_LONG} ` : ''}The provider answered ${status}: ${said}`;
  return new ProviderFault(kind, message, {
    status,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** Google's error object, as far as it is used. */
interface ErrorBody {
  readonly message?: string;
  readonly details?: readonly Readonly<Record<string, unknown>>[];
}

function readBody(text: string): ErrorBody {
  try {
    const parsed: unknown = JSON.parse(text);
    const first = Array.isArray(parsed) ? parsed[0] : parsed;
    if (typeof first?.error === 'object' && first.error !== null) return first.error;
  } catch {
    // A proxy in between answers in its own form.
  }
  return { message: text };
}

function kindOf(status: number, body: ErrorBody): ProviderFaultKind {
  const message = String(body.message ?? '');
  // A key that Google does not know is a 400 there.
  const badKey = status === 400 && (detail(body, 'API_KEY_INVALID') || /api[ _]key not valid/i.test(message));
  if (status === 401 || status === 403 || badKey) return 'auth';
  if (status === 429) return 'rate_limit';
  if (status === 408 || status >= 500) return 'server';
  if (
    status === 413 ||
    (status === 400 && /token/i.test(message) && /exceed|limit|maximum|too (many|long)/i.test(message))
  ) {
    return 'context_overflow';
  }
  return 'bad_request';
}

function detail(body: ErrorBody, reason: string): boolean {
  return Array.isArray(body.details) && body.details.some((each) => each?.['reason'] === reason);
}

/** `google.rpc.RetryInfo`, such as `{"retryDelay": "13.5s"}`; in milliseconds. */
function retryDelay(body: ErrorBody): number | undefined {
  if (!Array.isArray(body.details)) return undefined;
  for (const each of body.details) {
    const match = /^(\d+(?:\.\d+)?)s$/.exec(String(each?.['retryDelay'] ?? ''));
    if (match) return Math.ceil(Number(match[1]) * 1000);
  }
  return undefined;
}

/** A connection's fault, or that of Google's login, which is asked for a token first. */
function unanswered(error: unknown, request: FailedRequest): ProviderFault {
  const fault = connectionFault(error, request);
  if (request.started) return fault;
  if (/incomplete json/i.test(fault.message)) {
    return new ProviderFault('broken_stream', `The provider sent something that is no reply: ${fault.message}`, {
      cause: error,
    });
  }
  if (/could not load the default credentials|invalid_grant|could not refresh access token/i.test(fault.message)) {
    const message = `Google gave no credentials; check ${request.variable} and your application default login. ${fault.message}`;
    return new ProviderFault('auth', message, { cause: error });
  }
  return fault;
}
