import { ProviderFault, SessionFault } from '../session/faults.ts';
import { ERROR_CODE, RequestError } from './errors.ts';

/**
 * What the peer may know of a session's or provider's fault; undefined for anything else, which stays internal.
 * A caller that knows the id of an `unknown_session` as its client wrote it throws `RequestError.sessionNotFound(id)` itself.
 */
export function toRequestError(error: unknown): RequestError | undefined {
  if (error instanceof ProviderFault) return providerError(error);
  return error instanceof SessionFault ? sessionError(error) : undefined;
}

function sessionError(fault: SessionFault): RequestError {
  switch (fault.kind) {
    case 'unknown_session':
      return new RequestError(ERROR_CODE.resourceNotFound, fault.message);
    case 'invalid_params':
      return RequestError.invalidParams([{ path: '', message: fault.message }]);
    case 'transcript_changed':
      return RequestError.transcriptChanged(fault.message);
    case 'transcript_busy':
      return RequestError.internalError(fault.message, { code: 'session_transcript_busy' });
    case 'auth_required':
      return RequestError.authRequired(fault.message);
    case 'storage':
      return RequestError.internalError(fault.message, { code: 'session_storage_failed' });
    case 'provider':
      return RequestError.internalError(fault.message, { code: 'provider_failed' });
    default:
      return fault.kind satisfies never;
  }
}

function providerError(fault: ProviderFault): RequestError {
  if (fault.kind === 'auth') return RequestError.authRequired(fault.message);
  const { kind, status, retryAfterMs } = fault;
  return RequestError.internalError(fault.message, {
    code: `provider_${kind}`,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
