/** A command that a person can give instead of a prompt. */
export interface CommandInfo {
  readonly name: string;
  readonly description: string;
  /** What may follow the name. */
  readonly hint?: string;
}

export const COMMANDS = [
  { name: 'help', description: 'Show what commands there are' },
  { name: 'model', description: 'Show the models, or go on with another one', hint: 'name of a model' },
  { name: 'compress', description: 'Replace the older part of the conversation by a summary' },
] as const satisfies readonly CommandInfo[];

export type CommandName = (typeof COMMANDS)[number]['name'];

export interface Command {
  readonly name: CommandName;
  /** What follows the name, trimmed. */
  readonly argument: string;
  /** As it was typed. */
  readonly raw: string;
}

/** The command that a text is; undefined for every other text, other words behind a slash included. */
export function parseCommand(raw: string): Command | undefined {
  const [, word, rest = ''] = /^\s*\/(\S+)(?:\s+([\s\S]*))?$/.exec(raw) ?? [];
  const known = COMMANDS.find(({ name }) => name === word);
  return known && { name: known.name, argument: rest.trim(), raw };
}

/** The command that a prompt is; one with anything but text in it is for the model. */
export function commandOf(parts: readonly { readonly text?: string | undefined }[]): Command | undefined {
  if (!parts.every((part) => typeof part.text === 'string' && Object.keys(part).length === 1)) return undefined;
  return parseCommand(parts.map(({ text }) => text).join(' '));
}
