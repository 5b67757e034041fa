import type { ClientCapabilities, InitializeRequest } from '@agentclientprotocol/sdk';
import type { ApprovalReply, ApprovalRequest, QuestionReply, QuestionRequest } from '../session/ports.ts';
import { approvalReply, approvalRequest } from './approval.ts';
import type { Connection } from './connection.ts';
import { ERROR_CODE, HangUpError, RequestError } from './errors.ts';
import * as methods from './methods.ts';
import { failedReply, permissionRequest, questionReply } from './permission.ts';
import { isRecord } from '../is-record.ts';

/**
 * How a client is asked. `recorded`: one permission request a call, answered as the reference's daemon does. `plain`:
 * permission requests with an option a choice. `elicitation`: one form a call; `otherwise` is for a client that turns out to
 * know none.
 */
export type QuestionForm =
  | { readonly kind: 'recorded' }
  | { readonly kind: 'plain' }
  | { readonly kind: 'elicitation'; readonly otherwise: 'recorded' | 'plain' };

/** The client as it introduced itself. */
export interface ClientIdentity {
  isDaemon: boolean;
  capabilities: ClientCapabilities;
  form: QuestionForm;
}

/** A client that has not said anything of itself yet. `plain`: the process was started for one that knows ACP only. */
export const unknownClient = (plain: boolean): ClientIdentity => ({
  isDaemon: false,
  capabilities: {},
  form: { kind: plain ? 'plain' : 'recorded' },
});

/** Decides at `initialize` what the client is and how it is asked. A daemon is always asked in the recorded form. */
export function identityOf(
  { clientInfo, clientCapabilities }: Pick<InitializeRequest, 'clientInfo' | 'clientCapabilities'>,
  plain: boolean,
): ClientIdentity {
  const capabilities = clientCapabilities ?? {};
  if (methods.DAEMON_CLIENT_NAMES.includes(clientInfo?.name ?? '')) {
    return { isDaemon: true, capabilities, form: { kind: 'recorded' } };
  }
  const otherwise = plain ? 'plain' : 'recorded';
  const knowsForms = isRecord(capabilities.elicitation?.form);
  return { isDaemon: false, capabilities, form: knowsForms ? { kind: 'elicitation', otherwise } : { kind: otherwise } };
}

/** Asks in the form that the client can answer. Settles as `SessionClient.ask` does. */
export async function askClient(
  connection: Connection,
  client: ClientIdentity,
  request: QuestionRequest,
  signal: AbortSignal,
): Promise<QuestionReply> {
  return await settled(signal, () => askInForm(connection, client, request, signal));
}

/** Asks whether a call may run. Settles as `SessionClient.approve` does. */
export async function askForApproval(
  connection: Connection,
  request: ApprovalRequest,
  signal: AbortSignal,
): Promise<ApprovalReply> {
  return await settled(signal, async () =>
    approvalReply(request, await connection.request(methods.requestPermission, approvalRequest(request), { signal })),
  );
}

async function settled<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T | Unasked> {
  try {
    return await ask();
  } catch (error) {
    // A client that is gone has decided nothing.
    if (signal.aborted || error instanceof HangUpError) return { kind: 'unattended', reason: 'abort' };
    if (error instanceof RequestError) return failedReply(error.code, error.message);
    throw error;
  }
}

/** What is no answer to anything that was asked. */
type Unasked = { readonly kind: 'unattended'; readonly reason: 'abort' } | ReturnType<typeof failedReply>;

async function askInForm(
  connection: Connection,
  client: ClientIdentity,
  request: QuestionRequest,
  signal: AbortSignal,
): Promise<QuestionReply> {
  const { form } = client;
  switch (form.kind) {
    case 'recorded':
      return questionReply(await connection.request(methods.requestPermission, permissionRequest(request), { signal }));
    case 'plain':
      return await askPlainClient(connection, request, signal);
    case 'elicitation':
      try {
        return await askByForm(connection, request, signal);
      } catch (error) {
        if (!knowsNoForms(error)) throw error;
        // Unless another session has found it out meanwhile.
        if (client.form === form) client.form = { kind: form.otherwise };
        return await askInForm(connection, { ...client, form: { kind: form.otherwise } }, request, signal);
      }
  }
}

async function askPlainClient(
  connection: Connection,
  request: QuestionRequest,
  signal: AbortSignal,
): Promise<QuestionReply> {
  const { askPlainly } = await import('./plain.ts');
  const asking = askPlainly(request);
  let step = asking.next();
  while (!step.done) {
    step = asking.next(await connection.request(methods.requestPermission, step.value, { signal }));
  }
  return step.value;
}

/** Its result is read by hand: a field that somebody left at null must not cost the answers of the others. */
const createElicitation = { ...methods.createElicitation, result: undefined };

async function askByForm(
  connection: Connection,
  request: QuestionRequest,
  signal: AbortSignal,
): Promise<QuestionReply> {
  const { elicitationReply, elicitationRequest, questionCard } = await import('./elicitation.ts');
  signal.throwIfAborted();
  await connection.notify(methods.sessionUpdate, { sessionId: request.sessionId, update: questionCard(request) });
  const result: unknown = await connection.request(createElicitation, elicitationRequest(request), { signal });
  return elicitationReply(request.questions, result);
}

/** What a client answers that has advertised forms and knows no such method, or not our fields. */
const knowsNoForms = (error: unknown): boolean =>
  error instanceof RequestError &&
  (error.code === ERROR_CODE.methodNotFound || error.code === ERROR_CODE.invalidParams);
