import type { Suite } from '../suite.ts';
import { ASKS } from './restore-ask.ts';
import { DECLINES } from './restore-declined.ts';
import { LOADS } from './restore-load.ts';
import { ORDER } from './restore-order.ts';
import { UNATTENDED } from './restore-unattended.ts';

export const RESTORE_SUITE: Suite = {
  id: 'restore',
  title: 'questions that outlive the process which asked them',
  checks: [...LOADS, ...ASKS, ...DECLINES, ...UNATTENDED, ...ORDER],
};
