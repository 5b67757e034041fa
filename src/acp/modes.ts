import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';

/** The reference's approval modes. A question is asked in every one of them. */
const MODES = [
  { id: 'plan', name: 'Plan', description: 'Reads and plans; changes nothing and runs no commands' },
  { id: 'default', name: 'Default', description: 'Asks before it changes files or runs commands' },
  { id: 'auto-edit', name: 'Auto edit', description: 'Changes files without asking; asks before it runs commands' },
  { id: 'yolo', name: 'YOLO', description: 'Asks for nothing' },
] as const;

/** The config option that is the same thing as the session's mode. */
export const MODE_OPTION = 'mode';

export const isMode = (id: unknown): id is string => MODES.some((mode) => mode.id === id);

export const modeState = (current: string): SessionModeState => ({
  currentModeId: current,
  availableModes: MODES.map((mode) => ({ ...mode })),
});

export const configOptions = (currentMode: string): SessionConfigOption[] => [
  {
    id: MODE_OPTION,
    name: 'Mode',
    description: 'What the agent may do without asking',
    category: 'mode',
    type: 'select',
    currentValue: currentMode,
    options: MODES.map(({ id, name, description }) => ({ value: id, name, description })),
  },
];

/** What a client is told of a session's settings. */
export const settingsOf = ({ mode }: { readonly mode: string }) => ({
  modes: modeState(mode),
  configOptions: configOptions(mode),
});
