import type { AvailableCommand, SessionUpdate } from '@agentclientprotocol/sdk';
import { COMMANDS, type CommandInfo } from '../session/commands.ts';

const COMMAND_LIST: readonly CommandInfo[] = COMMANDS;

/** The commands, as the protocol lists them. */
export const availableCommands = (): AvailableCommand[] =>
  COMMAND_LIST.map(({ name, description, hint }) => ({
    name,
    description,
    input: hint === undefined ? null : { hint },
  }));

export const availableCommandsUpdate = (): SessionUpdate => ({
  sessionUpdate: 'available_commands_update',
  availableCommands: availableCommands(),
});
