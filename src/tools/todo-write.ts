import { randomUUID } from 'node:crypto';
import type { Tool, ToolOutput } from '../session/ports.ts';
import { refuseArgument } from './arguments.ts';

const STATUSES = ['pending', 'in_progress', 'completed'] as const;
const MAX_TODOS = 200;
const MAX_CONTENT = 2000;
const MAX_ID = 500;

interface Todo {
  readonly id: string;
  readonly content: string;
  readonly status: (typeof STATUSES)[number];
}

/** A session's own: it remembers the list, to say what a new one changes. */
export function todoWrite(): Tool {
  let planId: string = randomUUID();
  let before: readonly Todo[] = [];
  return {
    declaration: {
      name: 'todo_write',
      description:
        'Show the person your plan for a task of several steps, and how far you are. Each call gives the whole list, which ' +
        'replaces the one before. Keep one item in progress, and mark it completed as soon as it is.',
      parametersJsonSchema: {
        type: 'object',
        properties: {
          todos: {
            type: 'array',
            maxItems: MAX_TODOS,
            description: 'The whole list; empty to take it away.',
            items: {
              type: 'object',
              properties: {
                id: { type: 'string', maxLength: MAX_ID, description: 'The same from call to call.' },
                content: { type: 'string', minLength: 1, maxLength: MAX_CONTENT, description: 'What is to be done.' },
                status: { type: 'string', enum: STATUSES },
              },
              required: ['content', 'status', 'id'],
            },
          },
        },
        required: ['todos'],
      },
    },
    effect: 'note',
    async prepare(args) {
      const todos = todosOf(args['todos']);
      return {
        async run() {
          if (before.length === 0) planId = randomUUID();
          const output = outputOf(planId, before, todos);
          before = todos;
          return output;
        },
      };
    },
  };
}

function outputOf(planId: string, before: readonly Todo[], todos: readonly Todo[]): ToolOutput {
  const known = new Map(before.map((todo) => [todo.id, todo.status]));
  const changes = {
    created: todos.filter(({ id }) => !known.has(id)),
    completed: todos.filter(({ id, status }) => status === 'completed' && known.has(id) && known.get(id) !== status),
  };
  const done = todos.filter(({ status }) => status === 'completed').length;
  const text =
    todos.length === 0 ? 'The list is empty now.' : `The list is shown: ${done} of ${todos.length} completed.`;
  return { text, display: { type: 'todo_list', planId, todos, changes } };
}

function todosOf(value: unknown): readonly Todo[] {
  if (!Array.isArray(value)) refuseArgument('"todos" must be a list.');
  if (value.length > MAX_TODOS) refuseArgument(`"todos" must have at most ${MAX_TODOS} items.`);
  const todos = value.map(todoOf);
  if (new Set(todos.map(({ id }) => id)).size < todos.length)
    refuseArgument('Each item of "todos" needs its own "id".');
  return todos;
}

function todoOf(value: unknown, index: number): Todo {
  const { id, content, status } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const at = `todos[${index}]`;
  if (typeof id !== 'string' || id.trim() === '' || id.length > MAX_ID) {
    refuseArgument(`"${at}.id" must be a string of 1 to ${MAX_ID} characters.`);
  }
  if (typeof content !== 'string' || content.trim() === '' || content.length > MAX_CONTENT) {
    refuseArgument(`"${at}.content" must be a string of 1 to ${MAX_CONTENT} characters.`);
  }
  const known = STATUSES.find((one) => one === status);
  if (known === undefined) refuseArgument(`"${at}.status" must be one of ${STATUSES.join(', ')}.`);
  return { id, content, status: known };
}
