import { ProviderFault, type ProviderFaultKind } from '../session/faults.ts';
import { connectionFault, type FailedRequest, retryAfter, TOO_LONG, wordsOf } from './faults.ts';
import { isRecord } from '../is-record.ts';

/** What the messages of a refused request name. */
export interface RefusedRequest extends FailedRequest {
  readonly model: string;
  /** The variables that hold the model's name and the address. */
  readonly modelVariable: string;
  readonly addressVariable: string;
}

/** An error that came as an event of a stream, in the shape of the SDKs' errors. */
export class StreamedRefusal extends Error {
  readonly status: number;
  readonly error: unknown;

  constructor(status: number, error: unknown) {
    super(`HTTP ${status}`);
    this.name = 'StreamedRefusal';
    this.status = status;
    this.error = error;
  }
}

/** What the SDKs of OpenAI and Anthropic throw for an HTTP error, by shape: each chunk has classes of its own. */
interface Refused {
  readonly status: number;
  /** The body, or its `error`. */
  readonly error?: unknown;
  readonly headers?: Headers;
  readonly message: string;
}

/** The words and names in a provider's error. */
export interface RefusalText {
  readonly status: number;
  readonly message: string;
  /** Its `code` and `type`, where it has them. */
  readonly names: string;
}

/** What a provider said when it refused; undefined for an error of another kind. */
export function refusalText(error: unknown): RefusalText | undefined {
  if (!isRefused(error)) return undefined;
  const outer = isRecord(error.error) ? error.error : {};
  const inner = isRecord(outer['error']) ? outer['error'] : outer;
  const message = typeof inner['message'] === 'string' && inner['message'] !== '' ? inner['message'] : error.message;
  const nested = isRecord(inner['metadata']) ? inner['metadata']['raw'] : undefined;
  return {
    status: error.status,
    message: typeof nested === 'string' ? `${message} ${nested}` : message,
    names: `${inner['code'] ?? ''} ${inner['type'] ?? ''}`,
  };
}

/** Turns what an SDK, `fetch` or a stream threw into the fault that a person and the retries understand. */
export function httpFault(error: unknown, request: RefusedRequest): ProviderFault {
  if (error instanceof ProviderFault) return error;
  const text = refusalText(error);
  if (text === undefined) return connectionFault(error, request);
  const kind = kindOf(text);
  const { headers } = error as Refused;
  const said = `${text.status}: ${wordsOf(text.message, request) || 'nothing'}`;
  const retryAfterMs = waitOf(headers);
  return new ProviderFault(kind, sentence(kind, text.status, said, request), {
    status: text.status,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function sentence(kind: ProviderFaultKind, status: number, said: string, request: RefusedRequest): string {
  if (kind === 'auth') return `The provider refused the credentials; check ${request.variable}. It answered ${said}`;
  if (kind === 'context_overflow') return `${TOO_LONG} The provider answered ${said}`;
  if (status === 404) {
    const { model, modelVariable, addressVariable } = request;
    return `The provider knows no model "${model}" at this address; check ${modelVariable} and ${addressVariable}. It answered ${said}`;
  }
  return `The provider answered ${said}`;
}

/** Words of OpenAI, DashScope, vLLM, llama.cpp, DeepSeek, OpenRouter and Anthropic for a conversation that is too long. */
const OVERFLOW =
  /context_length_exceeded|exceed_context_size|request_too_large|maximum context length|context (length|window|size|limit)|(prompt|input) is too long|input length should be|too many (input )?tokens|exceeds? the (maximum|available|model)[^.]*(token|context)/i;
/** Money is not back in a second. */
const UNPAID = /insufficient_quota|insufficient balance|credit balance|billing|arrearage/i;

function kindOf({ status, message, names }: RefusalText): ProviderFaultKind {
  const text = `${names} ${message}`;
  if (status === 401 || status === 403) return 'auth';
  if (UNPAID.test(text) && status < 500) return 'bad_request';
  if (status === 413 || ((status === 400 || status === 422) && OVERFLOW.test(text))) return 'context_overflow';
  if (status === 429) return 'rate_limit';
  if (status === 408 || status === 409 || status >= 500) return 'server';
  return 'bad_request';
}

/** What the provider asks to wait: `retry-after-ms`, which is finer, or `retry-after`. Milliseconds. */
function waitOf(headers: Headers | undefined): number | undefined {
  if (headers === undefined) return undefined;
  const fine = Number(headers.get('retry-after-ms') || Number.NaN);
  return Number.isFinite(fine) ? Math.max(0, Math.ceil(fine)) : retryAfter(headers.get('retry-after'), Date.now());
}

function isRefused(error: unknown): error is Refused {
  return error instanceof Error && 'status' in error && typeof error.status === 'number';
}
