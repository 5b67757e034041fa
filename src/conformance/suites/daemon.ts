import type { Suite } from '../suite.ts';
import { ENDS } from './daemon-ends.ts';
import { GUARD } from './daemon-guard.ts';
import { QUESTIONS_ASKED } from './daemon-questions.ts';
import { RESTORES } from './daemon-restore.ts';
import { SESSIONS } from './daemon-sessions.ts';

export const DAEMON: Suite = {
  id: 'daemon',
  title: 'a daemon over an agent, and questions that outlive both',
  checks: [...SESSIONS, ...QUESTIONS_ASKED, ...RESTORES, ...ENDS, ...GUARD],
};
