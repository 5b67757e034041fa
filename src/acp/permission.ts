import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { questionMeta, readPermissionReplyMeta } from '../meta/meta.ts';
import type { Question, QuestionReply, QuestionRequest } from '../session/ports.ts';
import { ASK_USER_QUESTION } from '../session/question.ts';
import { isRecord } from '../is-record.ts';

/** The option that comes with answers. */
export const SUBMIT = 'proceed_once';
/** The option of who declines. */
export const CANCEL = 'cancel';
/** What of a client's own text goes into a function response, in characters. */
const MAX_QUOTED = 500;

/** The `session/request_permission` params of a question, in the recorded shape and key order. */
export function permissionRequest({
  sessionId,
  callId,
  questions,
  args,
  introduce,
}: QuestionRequest): RequestPermissionRequest {
  return {
    sessionId,
    options: [
      { optionId: SUBMIT, name: 'Submit', kind: 'allow_once' },
      { optionId: CANCEL, name: 'Cancel', kind: 'reject_once' },
    ],
    toolCall: {
      toolCallId: callId,
      status: 'pending',
      title: questionTitle(questions.length),
      content: introduce ? [{ type: 'content', content: { type: 'text', text: readable(questions) } }] : [],
      locations: [],
      kind: 'think',
      rawInput: args,
      _meta: questionMeta(ASK_USER_QUESTION, questions),
    },
  };
}

/** The title of a question's card. */
export const questionTitle = (count: number): string => `Ask user ${count} question${count === 1 ? '' : 's'}`;

/** Questions with their options, for people. */
export function readable(questions: readonly Question[]): string {
  return questions
    .map(({ question, options }) =>
      [question, ...options.map(({ label, description }) => `- ${label}: ${description}`)].join('\n'),
    )
    .join('\n\n');
}

/** Reads a client's result. Anything that is neither an offered option nor `cancelled` is a failure, never an answer. */
export function questionReply(result: unknown): QuestionReply {
  const choice = readChoice(result);
  if (choice.kind === 'cancelled') return choice.reason ? unattendedBy(choice.reason) : { kind: 'declined' };
  if (choice.kind === 'failed') return choice;
  if (choice.optionId === SUBMIT) return { kind: 'submitted', answers: choice.answers };
  if (choice.optionId === CANCEL) return { kind: 'declined' };
  return notOffered(choice.optionId);
}

export type Choice =
  | { readonly kind: 'selected'; readonly optionId: unknown; readonly answers: readonly unknown[] }
  | { readonly kind: 'cancelled'; readonly reason?: 'timeout' | 'session_closed' }
  | Failed;

type Failed = Extract<QuestionReply, { kind: 'failed' }>;

/** What a client's result says, whatever was asked. */
export function readChoice(result: unknown): Choice {
  const response = isRecord(result) ? result : {};
  const outcome = isRecord(response['outcome']) ? response['outcome'] : {};
  const meta = readPermissionReplyMeta(response['_meta']);
  switch (outcome['outcome']) {
    case 'cancelled': {
      const { cancelReason: reason } = meta;
      return { kind: 'cancelled', ...((reason === 'timeout' || reason === 'session_closed') && { reason }) };
    }
    case 'selected':
      return { kind: 'selected', optionId: outcome['optionId'], answers: [response['answers'], meta.answers] };
    default:
      return MALFORMED_REPLY;
  }
}

const unattendedBy = (reason: 'timeout' | 'session_closed') => ({ kind: 'unattended', reason }) as const;

/** A result that answers nothing. */
export const MALFORMED_REPLY: Failed = {
  kind: 'failed',
  message: 'the client sent an answer without a valid outcome',
};

/** The client chose what it was not given to choose from. */
export const notOffered = (optionId: unknown): Failed => ({
  kind: 'failed',
  message: `the client chose an option that was not offered: ${quoted(optionId)}`,
});

/** The id of the option that a result selects; undefined for every other outcome. */
export function selectedOption(result: unknown): unknown {
  const outcome = isRecord(result) ? result['outcome'] : undefined;
  return isRecord(outcome) && outcome['outcome'] === 'selected' ? outcome['optionId'] : undefined;
}

/** A client's JSON-RPC error instead of an answer. */
export const failedReply = (code: number, message: string): Failed => ({
  kind: 'failed',
  message: `the client answered with error ${code}: ${message.slice(0, MAX_QUOTED)}`,
});

const quoted = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, MAX_QUOTED);
