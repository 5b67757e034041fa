import type { FunctionDeclaration } from '@google/genai';
import { ASK_USER_QUESTION, MAX_OPTIONS, MAX_QUESTIONS, MIN_OPTIONS } from './question.ts';

/** What the model is told of `ask_user_question`: the reference's schema, in our words. */
export const ASK_USER_QUESTION_DECLARATION: FunctionDeclaration = {
  name: ASK_USER_QUESTION,
  description:
    'Ask the person one to four questions and wait for the answers. Use it when a decision is theirs to make or when ' +
    'what they want is unclear. Each question offers two to four choices; the person may also type an answer of their own.',
  parametersJsonSchema: {
    type: 'object',
    properties: {
      questions: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_QUESTIONS,
        description: 'The questions, asked together.',
        items: {
          type: 'object',
          properties: {
            question: { type: 'string', description: 'The whole question, ending in a question mark.' },
            header: { type: 'string', description: 'A label of one or two words, shown above the question.' },
            options: {
              type: 'array',
              minItems: MIN_OPTIONS,
              maxItems: MAX_OPTIONS,
              description: 'The choices. Leave out "other": the person can always type.',
              items: {
                type: 'object',
                properties: {
                  label: { type: 'string', description: 'The choice, in a few words.' },
                  description: { type: 'string', description: 'What choosing it means.' },
                },
                required: ['label', 'description'],
              },
            },
            multiSelect: { type: 'boolean', description: 'True when several choices may be taken.' },
          },
          required: ['question', 'header', 'options'],
        },
      },
      metadata: {
        type: 'object',
        properties: { source: { type: 'string' } },
        description: 'Where the question comes from; not shown.',
      },
    },
    required: ['questions'],
  },
};

/** The standing instruction of a session in this mode. */
export function systemInstruction(cwd: string, hasTools: boolean, mode: string): string {
  return [
    'You are a coding agent that works together with a person through their editor.',
    `The workspace is ${cwd}.`,
    `When a choice belongs to the person, ask with ${ASK_USER_QUESTION} instead of guessing; their answer comes back as the tool's result.`,
    ...(hasTools ? TOOL_HABITS : []),
    ...(mode === 'plan' ? [PLAN_MODE] : []),
    'Be brief and exact. Say what you did and what you did not do.',
  ].join('\n');
}

const TOOL_HABITS = [
  'Look at files with the tools before you speak of them, and read a file before you change it. Paths are absolute.',
  'Calls that do not depend on each other may be made together; they run in the order in which you make them.',
  'Some calls need the approval of the person. A call that was declined is not made again in another form: ask what is wanted instead.',
];

const PLAN_MODE =
  'The session is in plan mode: read, search and ask, then say what you would do. Nothing that changes files or runs commands works.';
