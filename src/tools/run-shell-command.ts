import { constants } from 'node:os';
import { stripVTControlCharacters } from 'node:util';
import type { PreparedCall, ShellResult, Tool, ToolContext, ToolOutput } from '../session/ports.ts';
import { optionalFlag, optionalInteger, optionalText, refuseArgument, textArgument } from './arguments.ts';
import { commandScope } from './command-scope.ts';
import { placeIn } from './workspace.ts';

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;
const MAX_COMMAND = 32 * 1024;
/** Of the output that a model and the transcript get, in UTF-16 units; what runs in a client's terminal may bring more. */
const MAX_OUTPUT = 32 * 1024;

export const RUN_SHELL_COMMAND: Tool = {
  declaration: {
    name: 'run_shell_command',
    description:
      'Run a command in bash (cmd.exe on Windows) and wait for it to end. There is nothing on its stdin, so it must not ' +
      'ask. Everything that it starts is ended with it. Long output is given with its middle left out.',
    parametersJsonSchema: {
      type: 'object',
      properties: {
        command: { type: 'string', description: 'The command line.' },
        description: { type: 'string', description: 'For the person, in a few words: what the command is for.' },
        directory: { type: 'string', description: 'The folder to run it in; the workspace when left out.' },
        timeout: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_TIMEOUT_MS,
          description: `Milliseconds after which it is ended; ${DEFAULT_TIMEOUT_MS} when left out.`,
        },
        is_background: { type: 'boolean', description: 'Must be false or left out: nothing runs in the background.' },
      },
      required: ['command'],
    },
  },
  effect: 'execute',
  async prepare(args, context) {
    const command = textArgument(args, 'command');
    if (command.length > MAX_COMMAND || command.includes('\0')) {
      refuseArgument(`"command" must have at most ${MAX_COMMAND} characters, and no NUL among them.`);
    }
    optionalText(args, 'description');
    const timeoutMs = optionalInteger(args, 'timeout', 1, MAX_TIMEOUT_MS) ?? DEFAULT_TIMEOUT_MS;
    if (optionalFlag(args, 'is_background')) {
      refuseArgument('Commands cannot run in the background here. Run it without "is_background", with a "timeout".');
    }
    const directory = optionalText(args, 'directory');
    const place = directory === undefined ? undefined : await placeIn(context, directory);
    const cwd = place?.path ?? context.cwd;
    const always = commandScope(command, cwd === context.cwd ? undefined : cwd);
    const prepared: PreparedCall = { run: () => run({ callId: context.callId, command, cwd, timeoutMs }, context) };
    return always === undefined ? prepared : { ...prepared, always };
  },
};

interface Command {
  readonly callId: string;
  readonly command: string;
  readonly cwd: string;
  readonly timeoutMs: number;
}

async function run(command: Command, context: ToolContext): Promise<ToolOutput> {
  await placeIn(context, command.cwd);
  const heard = (output: string) => context.progress(boundedEnd(stripVTControlCharacters(output)));
  const result = await context.shell.run(command, heard, context.signal);
  const plain = stripVTControlCharacters(result.output).trimEnd();
  const output = boundedEnd(plain);
  const truncated = result.truncated || plain.length > MAX_OUTPUT;
  return {
    text: textFor(command, result, output, truncated),
    display: displayOf(command, result, output, truncated),
    ...(result.timedOut && { ok: false, errorType: 'execution_timeout' as const }),
  };
}

function textFor({ cwd, timeoutMs }: Command, result: ShellResult, output: string, truncated: boolean): string {
  const end = result.timedOut ? `ended after its timeout of ${timeoutMs} ms` : endOf(result);
  const body = output === '' ? '(no output)' : output;
  return [`Command ${end}, in ${cwd}.`, truncated ? 'Output (part of it is left out):' : 'Output:', body].join('\n');
}

function endOf({ exitCode, signal }: ShellResult): string {
  return signal === null ? `exited with ${exitCode ?? 'an unknown code'}` : `was ended by ${signal}`;
}

/** The reference's record of a command. */
function displayOf({ cwd, timeoutMs }: Command, result: ShellResult, output: string, truncated: boolean): unknown {
  const { exitCode, signal, timedOut } = result;
  const failed = timedOut || signal !== null || exitCode !== 0;
  const error = timedOut ? `Ended after ${timeoutMs} ms, its timeout.` : null;
  return {
    type: 'shell_result',
    version: 1,
    directory: cwd,
    exitCode,
    signal: signal === null ? null : (numbers[signal] ?? null),
    pid: null,
    outcome: timedOut ? 'timed_out' : failed ? 'failed' : 'completed',
    outputFiles: [],
    output,
    text: [error, output !== '' || !failed ? output : timedOut ? '' : `Command ${endOf(result)}`]
      .filter((line) => line !== null && line !== '')
      .join('\n'),
    error,
    notices: [],
    truncated,
  };
}

const numbers: Readonly<Record<string, number>> = constants.signals;

function boundedEnd(text: string): string {
  return text.length <= MAX_OUTPUT ? text : text.slice(-MAX_OUTPUT);
}
