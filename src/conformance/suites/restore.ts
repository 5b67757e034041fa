import type { Suite } from '../suite.ts';

export const RESTORE_SUITE: Suite = { id: 'restore', title: 'questions that outlive the process', checks: [] };
