import type { ToolEffect } from './ports.ts';

/** What becomes of a call before it runs. `refuse`: the session is in plan mode. */
export type Approval = 'run' | 'ask' | 'refuse';

/**
 * Whether a call runs at once, after a person has allowed it, or not at all. `remembered`: a person has allowed all calls
 * like it in this session. A mode that is not known asks as `default` does.
 */
export function decideApproval(mode: string, effect: ToolEffect, remembered: boolean): Approval {
  if (effect === 'read' || effect === 'note') return 'run';
  if (mode === 'plan') return 'refuse';
  if (remembered || mode === 'yolo') return 'run';
  return mode === 'auto-edit' && effect === 'edit' ? 'run' : 'ask';
}
