import { QUESTION_TOOL } from '../names.ts';
import type { ModelRequest } from './conversation.ts';

/** One thing that the model does in a reply. */
export type Step =
  | { readonly text: string }
  | { readonly call: string; readonly args: object }
  /** Waits until the agent hangs up or the check lets it go on. */
  | { readonly wait: 'released' }
  /** In ms. */
  | { readonly pause: number };

/** What a prompt must hold to have the model do this. Nothing that an agent adds of itself looks like it. */
export const CUES = {
  say: '[[say]]',
  askOne: '[[ask one]]',
  askTwo: '[[ask two]]',
  askMany: '[[ask many]]',
  askMixed: '[[ask mixed]]',
  askInvalid: '[[ask invalid]]',
  slowly: '[[stream slowly]]',
  hold: '[[hold]]',
  shell: '[[shell]]',
} as const;

export const SAID = ['Hello ', 'from the ', 'conformance kit.\nIt has two lines.'];
/** What the model says before it stops talking. */
export const HELD = 'One moment, please.';

/** A question as the tool's arguments have it. */
export function question(text: string, header: string, labels: readonly string[], multiSelect?: boolean) {
  const options = labels.map((label) => ({ label, description: `Choose ${label}.` }));
  return { question: text, header, options, ...(multiSelect !== undefined && { multiSelect }) };
}

export const COLOUR = question('Which colour shall it be?', 'Colour', ['Red', 'Blue']);
export const SIZE = question('Which size shall it be?', 'Size', ['Small', 'Large']);
const EXTRAS = question('Which extras shall it have?', 'Extras', ['Bell', 'Light', 'Lock'], true);

const asks = (...questions: object[]): Step => ({ call: QUESTION_TOOL, args: { questions } });

/** How agents call the tool that runs a command, and what it is given. */
const SHELLS: Readonly<Record<string, (command: string) => object>> = {
  run_shell_command: (command) => ({ command, description: 'Make a file', is_background: false }),
  Bash: (command) => ({ command, description: 'Make a file' }),
  bash: (command) => ({ command, description: 'Make a file' }),
  shell: (command) => ({ command: ['sh', '-c', command] }),
  exec_command: (command) => ({ cmd: command }),
};

export const shellOf = (tools: readonly string[]): string | undefined =>
  Object.keys(SHELLS).find((name) => tools.includes(name));

function shellCall(tools: readonly string[]): Step {
  const name = shellOf(tools);
  if (name === undefined) return { text: 'There is no shell.' };
  return { call: name, args: SHELLS[name]?.('touch made-by-the-conformance-kit') ?? {} };
}

const REPLIES: Readonly<Record<string, (tools: readonly string[]) => readonly Step[]>> = {
  [CUES.askOne]: () => [asks(COLOUR)],
  [CUES.askTwo]: () => [asks(COLOUR), asks(SIZE)],
  [CUES.askMany]: () => [asks(COLOUR, EXTRAS)],
  [CUES.askMixed]: () => [asks(COLOUR), { call: 'read_file', args: { file_path: '/nowhere/at-all.txt' } }],
  [CUES.askInvalid]: () => [asks(question('Which colour shall it be?', 'Colour', ['Red']))],
  [CUES.slowly]: () => Array.from({ length: 400 }, (_, index) => [{ text: `word ${index} ` }, { pause: 25 }]).flat(),
  [CUES.hold]: () => [{ text: HELD }, { wait: 'released' }],
  [CUES.shell]: (tools) => [shellCall(tools)],
};

/** The model's reply: to a cue what it asks for, to results of tools what they said, to all else a greeting. */
export function replyTo(request: Pick<ModelRequest, 'last' | 'tools'>): readonly Step[] {
  const { last, tools } = request;
  const texts = last.texts.join('\n');
  const cue = Object.values(CUES)
    .filter((one) => texts.includes(one))
    .sort((a, b) => texts.lastIndexOf(b) - texts.lastIndexOf(a))[0];
  // A side request of the agent, for a title perhaps, offers no tools; the history that it quotes holds cues.
  const reply =
    cue === undefined || (tools.length === 0 && cue !== CUES.slowly && cue !== CUES.hold) ? undefined : REPLIES[cue];
  if (reply !== undefined) return reply(tools);
  if (cue === undefined && last.results.length > 0)
    return [{ text: `The tool said: ${last.results.map(({ text }) => text).join(' | ')}` }];
  return SAID.map((text) => ({ text }));
}
