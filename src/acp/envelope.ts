import type { ErrorObject } from './errors.ts';
import { ERROR_CODE, RequestError } from './errors.ts';
import type { ResponseMessage, RpcMessage } from './rpc.ts';
import { isRecord } from '../is-record.ts';

/** Cancellation as vscode-jsonrpc hard-codes it: `$/cancelRequest {id}`; ACP has `$/cancel_request {requestId}`. */
const INNER_CANCEL = '$/cancelRequest';
const CANCEL = '$/cancel_request';
/** Notifications under it may be ignored, as the protocol says. */
const PROTOCOL_LEVEL = '$/';

export type Decoded =
  | { readonly kind: 'message'; readonly message: RpcMessage }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused'; readonly error: RequestError };

const IGNORED: Decoded = { kind: 'ignored' };

/**
 * One line off the wire as vscode-jsonrpc wants it. Whatever it would drop in silence is refused here instead, but never
 * something that looks like a response: an answer to it could be answered in turn. `prefix` is what our own requests'
 * ids begin with; inside they are plain numbers.
 */
export function decodeMessage(text: string, prefix: string): Decoded {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'refused', error: RequestError.parseError() };
  }
  if (Array.isArray(value)) return refused('batches are not supported');
  if (!isRecord(value)) return refused('not a JSON object');
  if (!('method' in value)) return isResponseShaped(value) ? decodeResponse(value, prefix) : refused('no method');
  if (value['jsonrpc'] !== '2.0') return refused('"jsonrpc" must be "2.0"');
  return decodeCall(value);
}

function decodeCall(value: Record<string, unknown>): Decoded {
  const { id, method, params } = value;
  if (typeof method !== 'string') return refused('"method" must be a string');
  if ('id' in value) {
    if (!isId(id)) return refused('"id" must be a string or a number');
    return { kind: 'message', message: { jsonrpc: '2.0', id, method, params } };
  }
  if (!method.startsWith(PROTOCOL_LEVEL)) return { kind: 'notification', method, params };
  const requestId = method === CANCEL && isRecord(params) ? params['requestId'] : undefined;
  return isId(requestId)
    ? { kind: 'message', message: { jsonrpc: '2.0', method: INNER_CANCEL, params: { id: requestId } } }
    : IGNORED;
}

function decodeResponse(value: Record<string, unknown>, prefix: string): Decoded {
  const { id } = value;
  // A number would be taken for one of our own ids inside, which the peer has never seen.
  if (typeof id !== 'string') return IGNORED;
  const inner = Number(id.slice(prefix.length));
  if (!Number.isSafeInteger(inner) || `${prefix}${inner}` !== id) return IGNORED;
  return { kind: 'message', message: outcomeOf(inner, value) };
}

/** A broken response settles its request too, as an error: nobody would answer it again. */
function outcomeOf(id: number, { jsonrpc, result, error }: Record<string, unknown>): ResponseMessage {
  if (jsonrpc === '2.0') {
    if (isErrorObject(error)) return { jsonrpc: '2.0', id, error };
    if (result !== undefined && (error === undefined || error === null)) return { jsonrpc: '2.0', id, result };
  }
  return { jsonrpc: '2.0', id, error: { code: ERROR_CODE.internalError, message: 'the response is malformed' } };
}

/** The message as it goes out: ids of requests prefixed, cancellation in ACP's spelling. */
export function encodeMessage(message: RpcMessage, prefix: string): RpcMessage {
  if (!('method' in message)) return message;
  if (message.method === INNER_CANCEL) {
    const id = isRecord(message.params) ? message.params['id'] : undefined;
    return { jsonrpc: '2.0', method: CANCEL, params: { requestId: `${prefix}${id}` } };
  }
  return 'id' in message ? { ...message, id: `${prefix}${message.id}` } : message;
}

function refused(why: string): Decoded {
  return { kind: 'refused', error: RequestError.invalidRequest(why) };
}

function isResponseShaped(value: Record<string, unknown>): boolean {
  return 'id' in value || 'result' in value || 'error' in value;
}

function isErrorObject(value: unknown): value is ErrorObject {
  return isRecord(value) && Number.isInteger(value['code']) && typeof value['message'] === 'string';
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value));
}
