import { RequestError as SdkRequestError } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import { RequestError } from '../../src/acp/errors.ts';
import { toRequestError } from '../../src/acp/faults.ts';
import { ProviderFault, SessionFault } from '../../src/session/faults.ts';

test.each<[string, RequestError, SdkRequestError]>([
  ['parse error', RequestError.parseError(), SdkRequestError.parseError()],
  ['invalid request', RequestError.invalidRequest('x'), SdkRequestError.invalidRequest()],
  ['method not found', RequestError.methodNotFound('x'), SdkRequestError.methodNotFound('x')],
  ['invalid params', RequestError.invalidParams([{ path: '', message: 'x' }]), SdkRequestError.invalidParams()],
  ['internal error', RequestError.internalError(), SdkRequestError.internalError()],
  ['authentication required', RequestError.authRequired('x'), SdkRequestError.authRequired()],
  ['unknown session', RequestError.sessionNotFound('x'), SdkRequestError.resourceNotFound('session:x')],
  ['request cancelled', RequestError.requestCancelled(), SdkRequestError.requestCancelled()],
])("[ACP-4] the code of %s is the SDK's", (_, ours, theirs) => {
  expect(ours.code).toBe(theirs.code);
});

test('[TR-7] a changed transcript has the code and data that the reference knows', () => {
  expect(RequestError.transcriptChanged('m').toErrorObject()).toEqual({
    code: -32021,
    message: 'm',
    data: { code: 'session_transcript_changed' },
  });
});

describe('faults', () => {
  test.each<[SessionFault['kind'], number]>([
    ['unknown_session', -32002],
    ['invalid_params', -32602],
    ['transcript_changed', -32021],
    ['transcript_busy', -32603],
    ['auth_required', -32000],
    ['storage', -32603],
    ['provider', -32603],
  ])("[ACP-4, TR-7] a session's %s is %i with its message", (kind, code) => {
    expect(toRequestError(new SessionFault(kind, 'what to do'))).toMatchObject({
      code,
      message: expect.stringContaining('what to do'),
    });
  });

  test.each<[ProviderFault, object]>([
    [new ProviderFault('auth', 'bad key', { status: 401 }), { code: -32000, message: 'bad key' }],
    [
      new ProviderFault('rate_limit', 'slow down', { status: 429, retryAfterMs: 500, cause: new Error('secret') }),
      { code: -32603, message: 'slow down', data: { code: 'provider_rate_limit', status: 429, retryAfterMs: 500 } },
    ],
    [
      new ProviderFault('broken_stream', 'lost'),
      { code: -32603, message: 'lost', data: { code: 'provider_broken_stream' } },
    ],
  ])("[MD-4] a provider's fault is a clear error: %o", (fault, expected) => {
    expect(toRequestError(fault)?.toErrorObject()).toEqual(expected);
  });

  test.each([new Error('secret'), 'text', undefined, { name: 'SessionFault', kind: 'storage' }])(
    "[ACP-4] %o is nobody's business",
    (error) => {
      expect(toRequestError(error)).toBeUndefined();
    },
  );
});
