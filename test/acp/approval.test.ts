import { expect, test } from 'vitest';
import { approvalReply, approvalRequest } from '../../src/acp/approval.ts';
import type { ApprovalRequest } from '../../src/session/ports.ts';
import { decideApproval } from '../../src/session/approval.ts';

const CALL: ApprovalRequest = {
  sessionId: 's',
  cwd: '/srv/project',
  callId: 'call-1',
  name: 'run_shell_command',
  args: { command: 'ls -la', description: 'list' },
};
const ALWAYS: ApprovalRequest = { ...CALL, always: { key: 'shell ls', label: 'ls commands' } };

const selected = (optionId: unknown) => ({ outcome: { outcome: 'selected', optionId } });
const cancelled = (reason?: string) => ({
  outcome: { outcome: 'cancelled' },
  ...(reason && { _meta: { 'qwen.daemon.permissionCancelReason': reason } }),
});

test('[TL-1] always is offered where there is something that it covers', () => {
  expect(approvalRequest(ALWAYS).options.map(({ optionId }) => optionId)).toEqual([
    'proceed_always',
    'proceed_once',
    'cancel',
  ]);
  const { options, toolCall } = approvalRequest(CALL);
  expect(options.map(({ optionId }) => optionId)).toEqual(['proceed_once', 'cancel']);
  expect(toolCall).toMatchObject({ title: 'Shell: ls -la (list)', kind: 'execute', locations: [], content: [] });
});

test.each<[string, ApprovalRequest, unknown, object]>([
  ['once', CALL, selected('proceed_once'), { kind: 'allowed', always: false }],
  ['always', ALWAYS, selected('proceed_always'), { kind: 'allowed', always: true }],
  ['always, not offered', CALL, selected('proceed_always'), { kind: 'failed' }],
  ['reject', CALL, selected('cancel'), { kind: 'rejected' }],
  ['an unknown option', ALWAYS, selected('proceed_always_server'), { kind: 'failed' }],
  ['no option', CALL, selected(undefined), { kind: 'failed' }],
  ['cancelled', CALL, cancelled(), { kind: 'rejected' }],
  ['cancelled by a voter', CALL, cancelled('agent_cancelled'), { kind: 'rejected' }],
  ['timed out', CALL, cancelled('timeout'), { kind: 'unattended', reason: 'timeout' }],
  ['closed', CALL, cancelled('session_closed'), { kind: 'unattended', reason: 'session_closed' }],
  ['another outcome', CALL, { outcome: { outcome: 'maybe' } }, { kind: 'failed' }],
  ['no outcome', CALL, {}, { kind: 'failed' }],
  ['no object', CALL, 'proceed_once', { kind: 'failed' }],
  ['null', CALL, null, { kind: 'failed' }],
])('[TL-1, RS-7] the reply: %s', (_, request, result, expected) => {
  expect(approvalReply(request, result)).toMatchObject(expected);
});

test('[TL-1] what was allowed for the session runs unasked, but not in plan mode; an unknown mode asks', () => {
  expect(decideApproval('default', 'execute', true)).toBe('run');
  expect(decideApproval('auto-edit', 'execute', true)).toBe('run');
  expect(decideApproval('plan', 'execute', true)).toBe('refuse');
  expect(decideApproval('auto', 'edit', false)).toBe('ask');
});
