import type { Suite } from '../suite.ts';
import { ENDS } from './daemon-ends.ts';
import { GUARD } from './daemon-guard.ts';
import { KEEPS } from './daemon-keeps.ts';
import { LOADS_BY_CLIENTS } from './daemon-loads.ts';
import { PROMPTS } from './daemon-prompts.ts';
import { SESSIONS } from './daemon-sessions.ts';
import { VOTES } from './daemon-votes.ts';
import { WAITS_AND_EVENTS } from './daemon-waits.ts';

export const DAEMON: Suite = {
  id: 'daemon',
  title: 'a daemon over an agent, and questions that outlive both',
  checks: [...SESSIONS, ...PROMPTS, ...VOTES, ...WAITS_AND_EVENTS, ...LOADS_BY_CLIENTS, ...KEEPS, ...ENDS, ...GUARD],
};
