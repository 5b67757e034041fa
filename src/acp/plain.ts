import type { PermissionOption, RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { Question, QuestionReply, QuestionRequest } from '../session/ports.ts';
import {
  CANCEL,
  permissionRequest,
  questionReply,
  readable,
  SUBMIT,
  selectedOption,
  notOffered,
} from './permission.ts';

const DONE = 'done';
const CHOICE = 'choice_';
/** A client that toggles choices without end, as a robot may, is not asked for ever. */
const MAX_ROUNDS = 32;

/**
 * Asks a call's questions of a client that can do no more than press a button: yields the params of each
 * `session/request_permission`, is given its result, and returns the reply. A question that is skipped stays without an answer;
 * when all are, that is a decline. `cancelled` and whatever is no offered option speak for the whole call, and so does
 * `proceed_once`, which carries the answers itself.
 */
export function* askPlainly(request: QuestionRequest): Generator<RequestPermissionRequest, QuestionReply, unknown> {
  const answers: Record<string, string | readonly string[]> = {};
  for (const [index, question] of request.questions.entries()) {
    const step = yield* question.multiSelect === true
      ? askForSeveral(request, question, index)
      : askForOne(request, question, index);
    if (step.kind === 'reply') return step.reply;
    if (step.kind === 'chosen') answers[index] = step.answer;
  }
  return Object.keys(answers).length > 0 ? { kind: 'submitted', answers: [answers] } : { kind: 'declined' };
}

type Step =
  | { readonly kind: 'chosen'; readonly answer: string | readonly string[] }
  | { readonly kind: 'skipped' }
  /** The client's word for the whole call. */
  | { readonly kind: 'reply'; readonly reply: QuestionReply };

type Asking = Generator<RequestPermissionRequest, Step, unknown>;

function* askForOne(request: QuestionRequest, question: Question, index: number): Asking {
  const { options } = question;
  const buttons = options.map(({ label }, choice) => button(choice, label));
  const result = yield params(request, question, index, [...buttons, SKIP]);
  const chosen = options[choiceOf(result)];
  return chosen ? { kind: 'chosen', answer: chosen.label } : otherwise(result);
}

/** One request a choice, which is taken or given back, until the person is done. */
function* askForSeveral(request: QuestionRequest, question: Question, index: number): Asking {
  const { options } = question;
  const chosen = new Set<number>();
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const buttons = options.map(({ label }, choice) => button(choice, chosen.has(choice) ? `✓ ${label}` : label));
    const done: PermissionOption[] =
      chosen.size > 0 ? [{ optionId: DONE, name: `Done (${chosen.size})`, kind: 'allow_once' }] : [];
    // First, for those who always press the first button.
    const result = yield params(request, question, index, [...done, ...buttons, SKIP], chosen);
    const choice = choiceOf(result);
    if (chosen.size > 0 && selectedOption(result) === DONE) {
      return { kind: 'chosen', answer: options.flatMap(({ label }, at) => (chosen.has(at) ? [label] : [])) };
    }
    if (options[choice] === undefined) return otherwise(result);
    if (!chosen.delete(choice)) chosen.add(choice);
  }
  return { kind: 'reply', reply: { kind: 'failed', message: 'the client chose again and again, but was never done' } };
}

/** The option that leaves a question without an answer. Its id is the recorded form's for a decline. */
const SKIP: PermissionOption = { optionId: CANCEL, name: 'Skip', kind: 'reject_once' };

const button = (choice: number, name: string): PermissionOption => ({
  optionId: `${CHOICE}${choice}`,
  name,
  kind: 'allow_once',
});

/** -1 when no choice was selected. */
function choiceOf(result: unknown): number {
  const optionId = selectedOption(result);
  return typeof optionId === 'string' && /^choice_\d$/.test(optionId) ? Number(optionId.slice(CHOICE.length)) : -1;
}

function otherwise(result: unknown): Step {
  const optionId = selectedOption(result);
  if (optionId === CANCEL) return { kind: 'skipped' };
  if (optionId === undefined || optionId === SUBMIT) return { kind: 'reply', reply: questionReply(result) };
  return { kind: 'reply', reply: notOffered(optionId) };
}

function params(
  request: QuestionRequest,
  question: Question,
  index: number,
  options: PermissionOption[],
  chosen: ReadonlySet<number> = new Set(),
): RequestPermissionRequest {
  const { length } = request.questions;
  const title = length === 1 ? question.question : `${index + 1} of ${length}: ${question.question}`;
  const { toolCall, ...rest } = permissionRequest(request);
  const text = [readable([question]), ...hint(question, chosen)].join('\n\n');
  return { ...rest, options, toolCall: { ...toolCall, title, content: [textContent(text)] } };
}

function hint({ multiSelect, options }: Question, chosen: ReadonlySet<number>): string[] {
  if (multiSelect !== true) return [];
  const labels = options.flatMap(({ label }, choice) => (chosen.has(choice) ? [label] : []));
  return [labels.length === 0 ? 'Choose one after the other.' : `Chosen: ${labels.join(', ')}`];
}

const textContent = (text: string) => ({ type: 'content' as const, content: { type: 'text' as const, text } });
