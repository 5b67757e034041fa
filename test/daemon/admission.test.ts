import fc from 'fast-check';
import { expect, test } from 'vitest';
import { joins, type RestoreMoment, restoreRefusal, suppressesRestore } from '../../src/daemon/admission.ts';
import { Clients } from '../../src/daemon/clients.ts';
import { PromptQueue } from '../../src/daemon/queue.ts';
import { before, lastRecords } from '../../src/daemon/replay.ts';

const OPEN: RestoreMoment = {
  switchedOn: true,
  clientId: 'me',
  branch: false,
  hint: true,
  promptActive: false,
  pendingPromptCount: 0,
  goalTurnActive: false,
};

test.each<[string, Partial<RestoreMoment>, string | undefined]>([
  ['everything holds', {}, undefined],
  ['the switch is off', { switchedOn: false }, 'switched_off'],
  ['nobody is there to answer', { clientId: undefined }, 'no_client'],
  ['the session is a branch', { branch: true }, 'branch'],
  ['the child has nothing open', { hint: false }, 'nothing_open'],
  ['a prompt runs', { promptActive: true }, 'busy'],
  ['a prompt waits', { pendingPromptCount: 1 }, 'busy'],
  ['the child itself is at work', { goalTurnActive: true }, 'busy'],
])('[DM-3] a question is asked again only when all holds: %s', (_, moment, refusal) => {
  expect(restoreRefusal({ ...OPEN, ...moment })).toBe(refusal);
});

test('[DM-3, DM-4] what is known to be refused is suppressed, and what is suppressed is refused', () => {
  const moment = fc.record({
    switchedOn: fc.boolean(),
    clientId: fc.constantFrom(undefined, 'me'),
    branch: fc.boolean(),
    hint: fc.boolean(),
    promptActive: fc.boolean(),
    pendingPromptCount: fc.nat(2),
    goalTurnActive: fc.boolean(),
  });
  fc.assert(
    fc.property(moment, (one) => {
      const refusal = restoreRefusal(one);
      const isIdle = !one.promptActive && one.pendingPromptCount === 0 && !one.goalTurnActive;
      const holds = one.switchedOn && one.clientId !== undefined && !one.branch && one.hint && isIdle;
      expect(refusal === undefined).toBe(holds);
      expect(suppressesRestore(one)).toBe(refusal === 'no_client' || refusal === 'branch');
    }),
  );
});

const LOAD = { action: 'load', hasClient: true, pageSize: undefined } as const;
test.each([
  ['the same', LOAD, LOAD, true],
  ['one without a client', LOAD, { ...LOAD, hasClient: false }, false],
  ['a resume', LOAD, { ...LOAD, action: 'resume' as const }, false],
  ['another page', LOAD, { ...LOAD, pageSize: 5 }, false],
])('[DM-3] a load shares a call with %s', (_, running, next, shared) => {
  expect(joins(running, next)).toBe(shared);
});

test('[DM-1] prompts run one after the other, in order, up to the cap', () => {
  const queue = new PromptQueue<string>(3);
  const place = (promptId: string) => queue.place({ promptId, prompt: promptId });
  expect(queue.isIdle).toBe(true);
  expect([place('a'), place('b'), place('c'), place('d')]).toEqual(['started', 'queued', 'queued', 'full']);
  expect(queue.active?.promptId).toBe('a');
  expect(queue.advance()?.promptId).toBe('b');
  expect(place('e')).toBe('queued');
  expect(queue.clear().map(({ promptId }) => promptId)).toEqual(['b', 'c', 'e']);
  expect(queue.isIdle).toBe(true);
  expect(queue.advance()).toBeUndefined();
  expect(place('f')).toBe('started');
});

test('[DM-1] a client keeps the id it is attached under, any other gets one of its own', () => {
  const clients = new Clients();
  const minted = clients.attach('stale');
  expect(minted).toMatch(/^client_[0-9a-f-]{36}$/);
  expect(clients.attach(minted)).toBe(minted);
  expect(clients.attach(undefined)).not.toBe(minted);
  expect(clients.size).toBe(2);
  expect(clients.detach(minted)).toBe(true);
  expect(clients.has(minted)).toBe(false);
});

test('[DM-12] of clients that come and never leave, the one unseen for longest is let go', () => {
  const clients = new Clients();
  const first = clients.attach(undefined);
  const second = clients.attach(undefined);
  clients.seen(first);
  for (let at = 0; at < 255; at++) clients.attach(undefined);
  expect(clients.size).toBe(256);
  expect(clients.has(first)).toBe(true);
  expect(clients.has(second)).toBe(false);
});

const update = (recordId: string, timestamp: number) => ({ timestamp, _meta: { 'qwen.session.recordId': recordId } });

test('[DM-1] what a running turn has said already is left to its own events', () => {
  const updates = [update('a', 10), update('b', 20), update('c', 30)];
  expect(before(updates, 30)).toEqual(updates.slice(0, 2));
  expect(before(updates, 31)).toEqual(updates);
  expect(before(updates, 5)).toEqual([]);
  expect(before([{ sessionUpdate: 'x' }], 5)).toHaveLength(1);
});

test('[DM-1] the last records of a replay are whole ones', () => {
  const updates = [update('a', 1), update('b', 2), update('b', 3), update('c', 4)];
  expect(lastRecords(updates, 2)).toEqual({ updates: updates.slice(1), hasMore: true, anchorRecordId: 'b' });
  expect(lastRecords(updates, 3)).toEqual({ updates, hasMore: false, anchorRecordId: 'a' });
  expect(lastRecords([], 3)).toEqual({ updates: [], hasMore: false });
});
