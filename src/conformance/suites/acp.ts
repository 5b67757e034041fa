import type { Suite } from '../suite.ts';
import { HANDSHAKE } from './acp-handshake.ts';

export const ACP: Suite = {
  id: 'acp',
  title: 'what the Agent Client Protocol asks of an agent',
  checks: [...HANDSHAKE],
};
