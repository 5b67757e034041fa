import type { ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk';
import { questionTitle } from './permission.ts';

type Args = Readonly<Record<string, unknown>>;

interface Card {
  readonly displayName: string;
  readonly kind: ToolKind;
  /** What the call is about; empty where the arguments do not say. */
  readonly describe: (args: Args, cwd: string) => string;
}

const CARDS: Readonly<Record<string, Card>> = {
  ask_user_question: { displayName: 'AskUserQuestion', kind: 'think', describe: describeQuestions },
  read_file: { displayName: 'ReadFile', kind: 'read', describe: describeRead },
  list_directory: {
    displayName: 'ListFiles',
    kind: 'search',
    describe: (args, cwd) => pathIn(cwd, text(args['path'])),
  },
  glob: { displayName: 'Glob', kind: 'search', describe: describeSearch },
  grep_search: { displayName: 'Grep', kind: 'search', describe: describeSearch },
  edit: { displayName: 'Edit', kind: 'edit', describe: (args, cwd) => pathIn(cwd, text(args['file_path'])) },
  write_file: { displayName: 'WriteFile', kind: 'edit', describe: describeWrite },
  run_shell_command: { displayName: 'Shell', kind: 'execute', describe: describeCommand },
  todo_write: { displayName: 'TodoWrite', kind: 'think', describe: () => '' },
};

/** What a client shows of a tool call beside its arguments. */
export interface ToolCard {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: ToolCallLocation[];
}

/** The card of a call whose arguments are still being written. */
export function preparingCard(name: string): ToolCard {
  const card = cardOf(name);
  return { title: card?.displayName ?? name, kind: card?.kind ?? 'other', locations: [] };
}

/** The card of a whole call. Paths inside `cwd` are shown relative to it. */
export function toolCard(name: string, args: Args, cwd: string): ToolCard {
  const card = cardOf(name);
  if (card === undefined) return preparingCard(name);
  const description = card.describe(args, cwd);
  const title = description === '' ? card.displayName : `${card.displayName}: ${description}`;
  return { title, kind: card.kind, locations: locationsOf(args) };
}

function cardOf(name: string): Card | undefined {
  return Object.hasOwn(CARDS, name) ? CARDS[name] : undefined;
}

function locationsOf(args: Args): ToolCallLocation[] {
  const path = text(args['file_path']);
  if (path === '') return [];
  const { offset } = args;
  return [{ path, line: typeof offset === 'number' && Number.isInteger(offset) && offset >= 0 ? offset : null }];
}

function describeQuestions(args: Args): string {
  const { questions } = args;
  return Array.isArray(questions) && questions.length > 0 ? questionTitle(questions.length) : '';
}

function describeRead(args: Args, cwd: string): string {
  const path = pathIn(cwd, text(args['file_path']));
  const { offset, limit } = args;
  if (path === '' || typeof limit !== 'number') return path;
  const first = typeof offset === 'number' ? offset : 0;
  return `${path} (lines ${first + 1}-${first + limit})`;
}

function describeWrite(args: Args, cwd: string): string {
  const path = pathIn(cwd, text(args['file_path']));
  return path === '' ? '' : `Writing to ${path}`;
}

function describeCommand(args: Args): string {
  const command = text(args['command']);
  const description = text(args['description']);
  return description === '' || command === '' ? command : `${command} (${description})`;
}

function describeSearch(args: Args, cwd: string): string {
  const pattern = text(args['pattern']);
  const path = pathIn(cwd, text(args['path']));
  if (pattern === '') return '';
  const filter = text(args['glob']);
  const where = path === '' || path === cwd ? '' : ` in ${path}`;
  return `'${pattern}'${where}${filter === '' ? '' : ` (filter: '${filter}')`}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function pathIn(cwd: string, path: string): string {
  return cwd !== '' && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}
