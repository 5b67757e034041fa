import type { Question, QuestionReply, UnattendedReason } from './ports.ts';
import { isObject } from './record-bytes.ts';

export const ASK_USER_QUESTION = 'ask_user_question';

export const MAX_QUESTIONS = 4;
export const MIN_OPTIONS = 2;
export const MAX_OPTIONS = 4;

export interface AskUserQuestionParams {
  readonly questions: readonly Question[];
}

export type ParsedQuestionParams =
  | { readonly ok: true; readonly params: AskUserQuestionParams }
  | { readonly ok: false; readonly error: string };

/**
 * Reads the arguments of an `ask_user_question` call. Extra properties are ignored; anything else that is off fails
 * closed, with an error that tells the model what to mend.
 */
export function parseAskUserQuestionParams(args: unknown): ParsedQuestionParams {
  const questions = isObject(args) ? args['questions'] : undefined;
  if (!Array.isArray(questions)) return invalid('"questions" must be a list.');
  if (questions.length < 1 || questions.length > MAX_QUESTIONS) {
    return invalid(`"questions" must hold 1 to ${MAX_QUESTIONS} questions, not ${questions.length}.`);
  }
  for (const [index, question] of questions.entries()) {
    const fault = questionFault(question);
    if (fault) return invalid(`Question ${index + 1}: ${fault}`);
  }
  return { ok: true, params: { questions: questions as Question[] } };
}

const invalid = (error: string): ParsedQuestionParams => ({ ok: false, error });

function questionFault(value: unknown): string | undefined {
  if (!isObject(value)) return 'it must be an object.';
  if (!isFilled(value['question'])) return '"question" must be text that is not blank.';
  if (!isFilled(value['header'])) return '"header" must be text that is not blank.';
  const multiSelect = value['multiSelect'];
  if (multiSelect !== undefined && typeof multiSelect !== 'boolean') return '"multiSelect" must be true or false.';
  const options = value['options'];
  if (!Array.isArray(options)) return '"options" must be a list.';
  if (options.length < MIN_OPTIONS || options.length > MAX_OPTIONS) {
    return `"options" must hold ${MIN_OPTIONS} to ${MAX_OPTIONS} options, not ${options.length}.`;
  }
  const bad = options.findIndex((o) => !isObject(o) || !isFilled(o['label']) || !isFilled(o['description']));
  return bad === -1 ? undefined : `option ${bad + 1} needs a "label" and a "description" that are not blank.`;
}

export interface Answer {
  /** The question's text. */
  readonly question: string;
  readonly header: string;
  /** A choice, text as typed, or the labels of a multi-select joined by ", ". */
  readonly answer: string;
}

/**
 * The answers among the candidates for an `answers` object, keyed by the question's index as a decimal string. The first
 * candidate with a valid answer wins; within it, what is no answer (empty, another type, a key out of range) is ignored.
 */
export function readAnswers(questions: readonly Question[], candidates: readonly unknown[]): readonly Answer[] {
  for (const candidate of candidates) {
    if (!isObject(candidate)) continue;
    const answers = questions.flatMap((question, index) => {
      const key = String(index);
      const answer = Object.hasOwn(candidate, key) ? answerText(question, candidate[key]) : undefined;
      return answer === undefined ? [] : [{ question: question.question, header: question.header, answer }];
    });
    if (answers.length > 0) return answers;
  }
  return [];
}

function answerText(question: Question, value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (question.multiSelect !== true || !Array.isArray(value) || value.length === 0) return undefined;
  return value.every((label) => typeof label === 'string' && label !== '') ? value.join(', ') : undefined;
}

/**
 * How a question ended. The first three are persisted and reach the model; `unattended` never is: nobody decided, so it is
 * asked again.
 */
export type QuestionOutcome =
  | { readonly kind: 'answered'; readonly answers: readonly Answer[] }
  | { readonly kind: 'declined' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'unattended'; readonly reason: UnattendedReason };

/** Reads a client's reply as the outcome of a question. `answered` with no answers is a submit that chose nothing. */
export function outcomeOf(questions: readonly Question[], reply: QuestionReply): QuestionOutcome {
  if (reply.kind === 'submitted') return { kind: 'answered', answers: readAnswers(questions, reply.answers) };
  return reply;
}

/** The text that an answered question gives the model, naming each question's header and answer. */
export function answersText(answers: readonly Answer[]): string {
  return `The user answered:\n\n${answers.map(({ header, answer }) => `**${header}**: ${answer}`).join('\n')}`;
}

/** What clients get as `rawOutput` and the transcript keeps as `resultDisplay`. */
export function answersDisplay(answers: readonly Answer[], text: string): unknown {
  return {
    type: 'ask_user_question_answers',
    text,
    answers: answers.map(({ question, answer }) => ({ question, answer })),
  };
}

const isFilled = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';
