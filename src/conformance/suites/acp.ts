import type { Suite } from '../suite.ts';
import { CALLS } from './acp-calls.ts';
import { CANCEL } from './acp-cancel.ts';
import { END } from './acp-end.ts';
import { FRAMING } from './acp-framing.ts';
import { HANDSHAKE } from './acp-handshake.ts';
import { PERMISSION } from './acp-permission.ts';
import { SESSIONS } from './acp-sessions.ts';
import { TURNS } from './acp-turns.ts';

export const ACP: Suite = {
  id: 'acp',
  title: 'what the Agent Client Protocol asks of an agent',
  checks: [...HANDSHAKE, ...CALLS, ...FRAMING, ...SESSIONS, ...TURNS, ...PERMISSION, ...CANCEL, ...END],
};
