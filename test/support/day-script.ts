import type { DayCall } from './day-model.ts';
import { ask } from './peer.ts';

/** One prompt of the day and what a person sees of it. */
export interface DayTurn {
  readonly say: string;
  /** What the model calls, a batch a round; nothing for a turn of words. */
  readonly rounds?: readonly (readonly DayCall[])[];
  /** The last status of each card, in order; of a plan there is none. */
  readonly cards?: readonly ('completed' | 'failed')[];
  /** How many times a person is asked for permission, and what is answered. */
  readonly asks?: number;
  readonly permit?: 'always' | 'reject';
  /** The answer to the question. */
  readonly answer?: string;
  /** What the model was told by the tools, as its last words repeat it. */
  readonly told?: RegExp;
  /** What these files hold afterwards. */
  readonly files?: Readonly<Record<string, string>>;
  /** The statuses of the plan that is shown. */
  readonly plan?: readonly string[];
  /** What happens before, during or after it. */
  readonly event?: 'full' | 'user edits' | 'cancel' | 'kill' | 'auto-edit' | 'compressed';
}

const NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8] as const;

/** Fifty turns in the project at `cwd`, beginning with the name by which the model knows them: T01, T02 and so on. */
export function dayScript(cwd: string): readonly (DayTurn & { readonly name: string })[] {
  const at = (path: string) => `${cwd}/${path}`;
  const one = (name: string, args: object) => ({ rounds: [[{ name, args }]], cards: ['completed'] as const });
  const read = (path: string): DayCall => ({ name: 'read_file', args: { file_path: at(path) } });
  const write = (path: string, content: string): DayCall => ({
    name: 'write_file',
    args: { file_path: at(path), content },
  });
  const edit = (path: string, old_string: string, new_string: string): DayCall => ({
    name: 'edit',
    args: { file_path: at(path), old_string, new_string },
  });
  const sh = (command: string): DayCall => ({ name: 'run_shell_command', args: { command } });
  const plan = (...statuses: string[]): Pick<DayTurn, 'rounds' | 'plan'> => {
    const todos = statuses.map((status, id) => ({ id: `${id}`, content: `step ${id}`, status }));
    return { rounds: [[{ name: 'todo_write', args: { todos } }]], plan: statuses };
  };
  const question = (text: string, ...labels: string[]): DayCall => {
    const { call, args } = ask(text, 'Name', labels);
    return { name: call, args };
  };
  const turns: DayTurn[] = [
    { say: 'Plan the day.', ...plan('in_progress', 'pending', 'pending') },
    { say: 'What is here?', ...one('list_directory', { path: cwd }), told: /README\.md/ },
    { say: 'Which documents are there?', ...one('glob', { pattern: '**/*.md' }), told: /README\.md/ },
    { say: 'Read the first one.', rounds: [[read('README.md')]], cards: ['completed'], told: /# The day/ },
    {
      say: 'Name it, but ask me.',
      rounds: [[question('Which name?', 'Aurora', 'Boreas')], [write('name.txt', '{{answer}}\n')]],
      cards: ['completed', 'completed'],
      answer: 'Aurora',
      asks: 1,
      files: { 'name.txt': 'Aurora\n' },
    },
    ...NUMBERS.map((n) => ({
      say: `Write script ${n}.`,
      rounds: [[write(`scripts/${n}.sh`, `echo "script ${n}"\n`)]],
      cards: ['completed'] as const,
      asks: 1,
      files: { [`scripts/${n}.sh`]: `echo "script ${n}"\n` },
    })),
    ...NUMBERS.slice(0, 4).map((n) => ({
      say: `Let script ${n} say more.`,
      rounds: [[edit(`scripts/${n}.sh`, `script ${n}`, `script ${n}, better`)]],
      cards: ['completed'] as const,
      asks: 1,
      files: { [`scripts/${n}.sh`]: `echo "script ${n}, better"\n` },
    })),
    { say: 'Which are better?', ...one('grep_search', { pattern: 'better' }), told: /scripts\/4\.sh/ },
    {
      say: 'Run them.',
      rounds: [[sh('for n in 1 2 8; do bash scripts/$n.sh; done; echo T19 >> ran.txt')]],
      cards: ['completed'],
      asks: 1,
      told: /script 1, better\s+script 2, better\s+script 8/,
    },
    { say: 'Ask the server.', ...one('mcp__test__echo', { text: 'hello there' }), asks: 1, told: /hello there/ },
    { say: 'Where does it run?', ...one('mcp__test__where', {}), asks: 1, told: /"pid":\d+/ },
    {
      say: 'Read three at once.',
      rounds: [[read('scripts/1.sh'), read('scripts/2.sh'), read('scripts/8.sh')]],
      cards: ['completed', 'completed', 'completed'],
      told: /script 1, better[\s\S]*script 2, better[\s\S]*script 8/,
    },
    {
      say: 'Mend script 5.',
      rounds: [[edit('scripts/5.sh', 'no such text', 'x')], [edit('scripts/5.sh', 'script 5', 'mended 5')]],
      cards: ['failed', 'completed'],
      asks: 1,
      files: { 'scripts/5.sh': 'echo "mended 5"\n' },
    },
    {
      say: 'Run what fails.',
      rounds: [[sh('echo T24 >> ran.txt; echo oops >&2; exit 3')]],
      cards: ['completed'],
      asks: 1,
      told: /oops[\s\S]*3|3[\s\S]*oops/,
    },
    { say: 'How far are we?', ...plan('completed', 'in_progress', 'pending'), event: 'full' },
    { say: 'Read the name.', rounds: [[read('name.txt')]], cards: ['completed'], told: /Aurora/ },
    { say: 'Search again.', ...one('grep_search', { pattern: 'mended' }), told: /scripts\/5\.sh/ },
    {
      say: 'Remove everything.',
      rounds: [[sh('rm -rf scripts; echo T28 >> ran.txt')]],
      cards: ['failed'],
      asks: 1,
      permit: 'reject',
      files: { 'scripts/5.sh': 'echo "mended 5"\n' },
    },
    { say: 'Rather not.' },
    {
      say: 'Read the passwords.',
      rounds: [[{ name: 'read_file', args: { file_path: '/etc/passwd' } }]],
      cards: ['failed'],
    },
    {
      say: 'Count far.',
      rounds: [[sh('seq 1 20000; echo T31 >> ran.txt')]],
      cards: ['completed'],
      asks: 1,
      told: /\b1\s+2\s+3\b/,
    },
    {
      say: 'Sleep.',
      rounds: [[sh('echo T32 >> ran.txt; echo sleeping; exec sleep 600')]],
      cards: ['failed'],
      asks: 1,
      event: 'cancel',
    },
    {
      say: 'Name the evening.',
      rounds: [[question('Which evening?', 'Vesper', 'Dusk')], [write('evening.txt', '{{answer}}\n')]],
      cards: ['completed', 'completed'],
      asks: 1,
      answer: 'Vesper',
      files: { 'evening.txt': 'Vesper\n' },
      event: 'kill',
    },
    { say: 'Is the server back?', ...one('mcp__test__echo', { text: 'and again' }), asks: 1, told: /and again/ },
    {
      say: 'Run script 7.',
      rounds: [[sh('bash scripts/7.sh; echo T35 >> ran.txt')]],
      cards: ['completed'],
      asks: 1,
      told: /script 7/,
    },
    {
      say: 'Edit, and do not ask me any more.',
      rounds: [[edit('scripts/6.sh', 'script 6', 'six')]],
      cards: ['completed'],
      asks: 1,
      permit: 'always',
      files: { 'scripts/6.sh': 'echo "six"\n' },
    },
    {
      say: 'Edit more.',
      rounds: [[edit('scripts/6.sh', 'six', 'SIX'), edit('scripts/7.sh', 'script 7', 'SEVEN')]],
      cards: ['completed', 'completed'],
      files: { 'scripts/6.sh': 'echo "SIX"\n', 'scripts/7.sh': 'echo "SEVEN"\n' },
    },
    {
      say: 'Write notes.',
      rounds: [[write('notes.md', '# Notes\n')]],
      cards: ['completed'],
      files: { 'notes.md': '# Notes\n' },
      event: 'auto-edit',
    },
    {
      say: 'I changed them; add a line.',
      rounds: [[read('notes.md')], [edit('notes.md', 'by hand', 'by hand, and by me')]],
      cards: ['completed', 'completed'],
      files: { 'notes.md': '# Notes\nby hand, and by me\n' },
      event: 'user edits',
    },
    {
      say: 'All at once.',
      rounds: [[write('late.txt', 'late\n'), sh('cat late.txt; echo T40 >> ran.txt'), read('late.txt')]],
      cards: ['completed', 'completed', 'completed'],
      asks: 1,
      files: { 'late.txt': 'late\n' },
      told: /late[\s\S]*late/,
    },
    { say: '/compress', told: /replaced by a summary/, event: 'compressed' },
    { say: 'Search notes.', ...one('grep_search', { pattern: 'by me', glob: '*.md' }), told: /notes\.md/ },
    { say: 'What do you think?' },
    { say: 'What is in scripts?', ...one('list_directory', { path: at('scripts') }), told: /8\.sh/ },
    { say: 'And texts?', ...one('glob', { pattern: '*.txt' }), told: /evening\.txt/ },
    { say: 'Let the server fail.', ...one('mcp__test__fail', {}), cards: ['failed'], asks: 1, told: /it went wrong/ },
    { say: '/help', told: /\/compress/ },
    { say: 'Are we done?', ...plan('completed', 'completed', 'completed') },
    {
      say: 'Show the log.',
      rounds: [[sh('cat ran.txt')]],
      cards: ['completed'],
      asks: 1,
      told: /T19\s+T24\s+T31\s+T32\s+T35\s+T40/,
    },
    { say: 'Good night.' },
  ];
  return turns.map((turn, index) => {
    const name = `T${String(index + 1).padStart(2, '0')}`;
    return { ...turn, name, say: turn.say.startsWith('/') ? turn.say : `${name} ${turn.say}` };
  });
}

/** What the commands leave behind that ran, each once. */
export const RAN = 'T19\nT24\nT31\nT32\nT35\nT40\n';
