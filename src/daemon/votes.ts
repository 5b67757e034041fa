import type { RequestPermissionRequest } from '@agentclientprotocol/sdk';
import { isRecord, own, readQuestionMeta } from '../meta/meta.ts';
import type { Vote } from './ports.ts';
import { DaemonError } from './ports.ts';

/** Submits a question's answers; what else is offered needs none. */
const SUBMIT = 'proceed_once';
/** What the agents offer to decline with. */
const DECLINE = 'cancel';

export type CheckedVote =
  /** `vote` is in its canonical form: each answer one text under its question's index, in the order of the questions. */
  { readonly ok: true; readonly vote: Vote } | { readonly ok: false; readonly error: DaemonError };

/** One question of a permission request, as far as its answer's form depends on it. */
export interface AskedQuestion {
  readonly question: string;
  readonly header: string;
  readonly labels: readonly string[];
  readonly multiSelect: boolean;
}

/** The questions of a permission request; undefined for one that asks none. */
export function questionsOf(request: RequestPermissionRequest): readonly AskedQuestion[] | undefined {
  return readQuestionMeta(request.toolCall._meta)?.map((question) => {
    const options = own(question, 'options');
    return {
      question: text(own(question, 'question')),
      header: text(own(question, 'header')),
      labels: Array.isArray(options) ? options.map((option) => text(own(option, 'label'))) : [],
      multiSelect: own(question, 'multiSelect') === true,
    };
  });
}

/**
 * Whether a vote is one that the request can take. An answer is a text that is not empty or, where several may be chosen,
 * a list of such texts; a question may stay unanswered when another is answered.
 */
export function checkVote(request: RequestPermissionRequest, requestId: string, vote: Vote): CheckedVote {
  if (vote.kind === 'cancelled') return { ok: true, vote };
  const { optionId } = vote;
  if (optionId === '' || !request.options.some((option) => option.optionId === optionId)) {
    return refused('invalid_option_id', `Option ${JSON.stringify(optionId)} was not offered`, { requestId, optionId });
  }
  const questions = questionsOf(request);
  if (!questions || optionId !== SUBMIT) return { ok: true, vote: { kind: 'selected', optionId } };
  const answers = canonicalAnswers(questions, vote.answers ?? {});
  if (typeof answers === 'string') return refused('invalid_answers', answers, { requestId });
  return { ok: true, vote: { kind: 'selected', optionId, answers } };
}

/** The answers that count, or what is wrong with them. */
function canonicalAnswers(questions: readonly AskedQuestion[], answers: unknown): Record<string, string> | string {
  if (!isRecord(answers)) return '`answers` must be an object of texts or lists of texts';
  const stray = Object.keys(answers).find((key) => !isIndex(key, questions.length));
  if (stray !== undefined) {
    return `\`answers\` has ${JSON.stringify(stray.slice(0, 100))}, which is the index of no question`;
  }
  const given: [string, string][] = [];
  for (const [index, question] of questions.entries()) {
    const key = String(index);
    const value = own(answers, key);
    const fault = answerFault(question, value);
    if (fault) return `\`answers["${key}"]\` ${fault}`;
    const answer = answerText(question, value);
    if (answer !== undefined) given.push([key, answer]);
  }
  if (given.length === 0) return '`answers` must answer a question: an object from its index, as "0", to the answer';
  return Object.fromEntries(given);
}

const isIndex = (key: string, count: number): boolean => /^(0|[1-9]\d*)$/.test(key) && Number(key) < count;

function answerFault({ multiSelect }: AskedQuestion, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return undefined;
  if (!Array.isArray(value)) return multiSelect ? 'must be a text or a list of texts' : 'must be a text';
  if (!multiSelect) return 'must be a text, one choice is asked for';
  return value.every((label) => typeof label === 'string' && label !== '')
    ? undefined
    : 'must list texts that are not empty';
}

/** As one text, which every child takes; undefined for no answer. */
function answerText({ multiSelect, labels }: AskedQuestion, value: unknown): string | undefined {
  if (!multiSelect) return value === '' ? undefined : (value as string | undefined);
  const chosen = typeof value === 'string' ? value.split(', ') : ((value as readonly string[] | undefined) ?? []);
  const joined = typeof value === 'string' ? value : chosen.join(', ');
  if (joined === '') return undefined;
  // In the order of the options, so that two people who chose the same have answered the same.
  const known = chosen.length > 0 && chosen.every((label) => labels.includes(label));
  return known ? labels.filter((label) => chosen.includes(label)).join(', ') : joined;
}

/** Two votes of one request agree exactly when these are equal. The vote is a checked one. */
export function choiceOf(vote: Vote): string {
  return vote.kind === 'cancelled' ? '' : JSON.stringify([vote.optionId, vote.answers ?? {}]);
}

/** Whether a vote turns the request down: ends it under every policy. */
export function declines(vote: Vote): boolean {
  return vote.kind === 'cancelled' || vote.optionId === DECLINE;
}

function refused(code: string, message: string, details: Readonly<Record<string, unknown>>): CheckedVote {
  return { ok: false, error: new DaemonError(400, message, { code, details }) };
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
