import { COMMANDS, type Command, type CommandInfo } from './commands.ts';
import { type Compression, commandResultRecord, compress, outputOf } from './compress.ts';
import { SessionFault } from './faults.ts';
import type { CommandOutput, Model, ModelMenu } from './ports.ts';
import { fileHistorySnapshotRecord, type RecordDraft, userRecord } from './records.ts';
import type { TurnOutcome } from './turn.ts';
import type { TurnHost } from './turn-host.ts';

export interface CommandServices {
  /** Undefined where there is only the one model. */
  readonly menu: ModelMenu | undefined;
  /** The daemon's id of the prompt. */
  readonly daemonPromptId: string | undefined;
  /** Makes the session go on with this model. */
  use(model: Model): void;
}

/**
 * Runs a command instead of asking the model. A question that the conversation's end leaves open stays open: then the
 * command itself is not recorded as a message, which would overtake it.
 */
export async function runCommand(host: TurnHost, command: Command, services: CommandServices): Promise<TurnOutcome> {
  const { chat, signal } = host;
  await chat.history();
  const { text: output, ...about } = await printedBy(host, command, services);
  if (signal.aborted) return { stopReason: 'cancelled' };
  const typed: RecordDraft[] = [];
  if (chat.dangling().length === 0) {
    const message = { role: 'user', parts: [{ text: command.raw }] };
    typed.push(userRecord(chat.context, message, services.daemonPromptId));
    typed.push(fileHistorySnapshotRecord(chat.context, host.promptId));
  }
  await chat.append([...typed, commandResultRecord(host, command.raw, output, about)], { durable: false });
  await host.emit({ kind: 'text', text: output, thought: false, command: about });
  return { stopReason: 'end_turn', commandOutput: output };
}

interface Printed extends CommandOutput {
  readonly text: string;
}

async function printedBy(host: TurnHost, command: Command, services: CommandServices): Promise<Printed> {
  switch (command.name) {
    case 'help':
      return { text: helpText() };
    case 'model': {
      const { argument } = command;
      return { text: await (argument === '' ? modelList(host, services) : chooseModel(host, argument, services)) };
    }
    case 'compress': {
      const done = await compress(host, 'manual');
      return { text: compressionText(done), ...outputOf(done) };
    }
  }
}

function helpText(): string {
  const commands: readonly CommandInfo[] = COMMANDS;
  const lines = commands.map(
    ({ name, description, hint }) => `- \`/${name}${hint === undefined ? '' : ` [${hint}]`}\`: ${description}`,
  );
  return ['Commands:', ...lines, '', 'Everything else is said to the model.'].join('\n');
}

async function modelList({ chat, model }: TurnHost, { menu }: CommandServices): Promise<string> {
  const current = `This session uses \`${model.name}\`.`;
  const choices = (await menu?.choices(chat.cwd)) ?? [];
  if (choices.length === 0) return `${current} No other model is configured.`;
  const lines = choices.map(
    ({ id, description }) => `- \`${id}\`${description === undefined ? '' : `: ${description}`}`,
  );
  return [`${current} Choose another one with \`/model <name>\`:`, ...lines].join('\n');
}

async function chooseModel({ chat }: TurnHost, id: string, { menu, use }: CommandServices): Promise<string> {
  if (menu === undefined) return `There is no model \`${id}\` to choose: this session has only one.`;
  try {
    const model = await menu.select(chat.cwd, id);
    use(model);
    return `This session goes on with \`${model.name}\`.`;
  } catch (error) {
    if (error instanceof SessionFault) return error.message;
    throw error;
  }
}

function compressionText(done: Compression): string {
  switch (done.kind) {
    case 'compressed':
      return `The older part of the conversation was replaced by a summary: about ${done.before} tokens became ${done.after}.`;
    case 'nothing_to_cut':
      return 'There is nothing in this conversation that a summary would make shorter.';
    case 'failed':
      return `The conversation was not compressed: ${done.reason} It goes on as it is.`;
  }
}
