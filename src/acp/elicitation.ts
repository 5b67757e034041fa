import type {
  CreateElicitationRequest,
  ElicitationPropertySchema,
  EnumOption,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import type { Question, QuestionReply, QuestionRequest } from '../session/ports.ts';
import { MALFORMED_REPLY, permissionRequest, questionReply } from './permission.ts';
import { isRecord } from '../is-record.ts';

/**
 * The `elicitation/create` params that ask a call's questions in one form: of each question a field with its choices, and one
 * for what the person would rather type. No field is required, as either of the two answers the question.
 */
export function elicitationRequest({ sessionId, callId, questions }: QuestionRequest): CreateElicitationRequest {
  const [first] = questions;
  const message = questions.length === 1 && first ? first.question : `The agent has ${questions.length} questions.`;
  const fields = questions.flatMap((question, index) => [
    [choiceField(index), choices(question)] as const,
    [textField(index), ownWords(question)] as const,
  ]);
  return {
    sessionId,
    toolCallId: callId,
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: Object.fromEntries(fields) },
  };
}

/** What shows the call before its form: a form carries no card, and has no room for what the client was not shown yet. */
export function questionCard(request: QuestionRequest): SessionUpdate {
  const { toolCall } = permissionRequest({ ...request, introduce: true });
  const title = toolCall.title ?? '';
  if (request.introduce) return { ...toolCall, title, sessionUpdate: 'tool_call' } as SessionUpdate;
  return { ...toolCall, title, sessionUpdate: 'tool_call_update' };
}

// Not the bare index: a JavaScript client would put every such field before all others.
const choiceField = (index: number): string => `question_${index + 1}`;
const textField = (index: number): string => `question_${index + 1}_other`;

function choices({ header, question, options, multiSelect }: Question): ElicitationPropertySchema {
  const described = options.map(({ label, description }) => `- ${label}: ${description}`);
  const shared = { title: header, description: [question, ...described].join('\n') };
  // A value that two alternatives allow would fit neither.
  const distinct = [...new Map(options.map((option) => [option.label, option])).values()];
  const values: EnumOption[] = distinct.map(({ label, description }) => ({ const: label, title: label, description }));
  // Without a least number of choices: what is typed beside an empty list is an answer.
  if (multiSelect === true) return { type: 'array', ...shared, items: { anyOf: values } };
  return { type: 'string', ...shared, oneOf: values };
}

const ownWords = ({ header, multiSelect }: Question): ElicitationPropertySchema => ({
  type: 'string',
  title: `${header}: something else`,
  description:
    multiSelect === true ? 'Your own words, added to what you chose.' : 'Your own words, instead of a choice.',
});

/**
 * Reads a client's result. `accept` gives the answers by index, of which nothing is ours: a choice that was offered, or text as
 * it was typed. `decline` is the person's no; `cancel`, in the protocol's words, no decision at all.
 */
export function elicitationReply(questions: readonly Question[], result: unknown): QuestionReply {
  const response = isRecord(result) ? result : {};
  switch (response['action']) {
    case 'accept':
      return { kind: 'submitted', answers: [answersIn(questions, response['content'])] };
    case 'decline':
      return { kind: 'declined' };
    case 'cancel':
      return { kind: 'unattended', reason: 'dismissed' };
    case undefined:
      // A client that answers every question in the recorded form is understood here too.
      return 'outcome' in response ? questionReply(response) : MALFORMED_REPLY;
    default:
      return MALFORMED_REPLY;
  }
}

function answersIn(questions: readonly Question[], content: unknown): Record<string, string | readonly string[]> {
  const answers: Record<string, string | readonly string[]> = {};
  if (!isRecord(content)) return answers;
  for (const [index, question] of questions.entries()) {
    const typed = typedText(content[textField(index)]);
    const chosen = chosenLabels(question, content[choiceField(index)]);
    if (question.multiSelect === true) answers[index] = [...chosen, ...typed];
    else answers[index] = typed[0] ?? chosen[0] ?? '';
  }
  return answers;
}

/** The text as it was typed; a field that holds blanks was not filled in. */
const typedText = (value: unknown): readonly string[] =>
  typeof value === 'string' && value.trim() !== '' ? [value] : [];

/** What was chosen of what was offered; nothing at all when something else is among it. */
function chosenLabels({ options, multiSelect }: Question, value: unknown): readonly string[] {
  const labels = multiSelect === true ? value : [value];
  const isOffered = (label: unknown) => options.some((option) => option.label === label);
  return Array.isArray(labels) && labels.every(isOffered) ? [...new Set<string>(labels)] : [];
}
