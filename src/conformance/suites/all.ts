import type { Suite } from '../suite.ts';
import { ACP } from './acp.ts';
import { DAEMON } from './daemon.ts';
import { RESTORE_SUITE } from './restore.ts';

/** Every suite, in the order in which they are run. */
export const SUITES: readonly Suite[] = [ACP, RESTORE_SUITE, DAEMON];
