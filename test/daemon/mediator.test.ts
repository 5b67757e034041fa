import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Ballot, Verdict } from '../../src/daemon/mediator.ts';
import { mediate, quorumOf } from '../../src/daemon/mediator.ts';
import type { PermissionStrategy, Vote } from '../../src/daemon/ports.ts';
import { choiceOf } from '../../src/daemon/votes.ts';

const answer = (text: string): Vote => ({ kind: 'selected', optionId: 'proceed_once', answers: { '0': text } });
const RED = answer('Red');
const BLUE = answer('Blue');
const CANCELLED: Vote = { kind: 'cancelled' };
const DECLINED: Vote = { kind: 'selected', optionId: 'cancel' };

function ballot(strategy: PermissionStrategy, more: Partial<Ballot> = {}): Ballot {
  const voters = new Set(['a', 'b', 'c']);
  return { strategy, quorum: undefined, originatorClientId: 'a', voters, votes: new Map(), resolved: false, ...more };
}

const from = (clientId: string | undefined, loopback = true) => ({ clientId, loopback });
const cast = (votes: Readonly<Record<string, Vote>>) => new Map(Object.entries(votes));
const brief = (verdict: Verdict): string => (verdict.kind === 'forbidden' ? verdict.reason : verdict.kind);

test.each<[string, Ballot, Vote, string | undefined, boolean, string]>([
  ['first-responder: anybody', ballot('first-responder'), RED, undefined, false, 'resolve'],
  ['designated: the originator', ballot('designated'), RED, 'a', true, 'resolve'],
  ['designated: another', ballot('designated'), RED, 'b', true, 'designated_mismatch'],
  ['designated: nobody known', ballot('designated'), RED, undefined, true, 'designated_mismatch'],
  ['designated: no originator', ballot('designated', { originatorClientId: undefined }), RED, 'b', true, 'resolve'],
  ['designated: another cancels', ballot('designated'), CANCELLED, 'b', true, 'resolve'],
  ['local-only: loopback', ballot('local-only'), RED, undefined, true, 'resolve'],
  ['local-only: from afar', ballot('local-only'), RED, 'a', false, 'remote_not_allowed'],
  ['local-only: cancelled from afar', ballot('local-only'), CANCELLED, 'a', false, 'resolve'],
  ['consensus: the first of three', ballot('consensus'), RED, 'a', true, 'partial'],
  ['consensus: the second agrees', ballot('consensus', { votes: cast({ a: RED }) }), RED, 'b', true, 'resolve'],
  [
    'consensus: the second answers otherwise',
    ballot('consensus', { votes: cast({ a: RED }) }),
    BLUE,
    'b',
    true,
    'partial',
  ],
  ['consensus: the same voter again', ballot('consensus', { votes: cast({ a: RED }) }), RED, 'a', true, 'partial'],
  [
    'consensus: a voter who came round',
    ballot('consensus', { votes: cast({ a: RED, b: BLUE }) }),
    BLUE,
    'a',
    true,
    'resolve',
  ],
  ['consensus: who was not attached', ballot('consensus'), RED, 'z', true, 'designated_mismatch'],
  ['consensus: nobody known', ballot('consensus'), RED, undefined, true, 'designated_mismatch'],
  ['consensus: who was not attached cancels', ballot('consensus'), DECLINED, 'z', true, 'resolve'],
  ['consensus: nobody was attached', ballot('consensus', { voters: new Set() }), RED, undefined, true, 'resolve'],
  ['consensus: a quorum of one', ballot('consensus', { quorum: 1 }), RED, 'c', true, 'resolve'],
  ['consensus: cancelled', ballot('consensus', { quorum: 3 }), CANCELLED, 'c', true, 'resolve'],
  ['resolved', ballot('first-responder', { resolved: true }), RED, 'a', true, 'already_resolved'],
  ['resolved, and cancelled now', ballot('consensus', { resolved: true }), CANCELLED, 'a', true, 'already_resolved'],
])('[DM-7, BT-3] %s', (_, state, vote, clientId, loopback, expected) => {
  expect(brief(mediate(state, vote, from(clientId, loopback)))).toBe(expected);
});

test.each([
  [0, undefined, 1],
  [1, undefined, 1],
  [2, undefined, 2],
  [3, undefined, 2],
  [4, undefined, 3],
  [5, undefined, 3],
  [3, 1, 1],
  [3, 3, 3],
  [3, 9, 3],
  [3, 0, 1],
])('[DM-7] of %i voters with a quorum of %s, %i must agree', (count, quorum, expected) => {
  const voters = new Set(Array.from({ length: count }, (_, index) => String(index)));
  expect(quorumOf({ quorum, voters })).toBe(expected);
});

test('[DM-7, BT-3] a partial vote tells how many more must agree, and not what was answered', () => {
  const verdict = mediate(ballot('consensus', { quorum: 3, votes: cast({ a: RED }) }), BLUE, from('b'));
  expect(verdict).toMatchObject({
    kind: 'partial',
    tally: { votesReceived: 2, votesNeeded: 2, quorum: 3, optionTallies: { proceed_once: 2 } },
  });
});

const VOTERS = ['a', 'b', 'c', 'd', 'e'];
const steps = fc.array(fc.tuple(fc.constantFrom(...VOTERS, 'stranger'), fc.constantFrom(RED, BLUE, answer('Green'))));

test('[DM-7, BT-3] consensus ends exactly when a quorum has the same last answer, however they voted before', () => {
  fc.assert(
    fc.property(
      steps,
      fc.option(fc.integer({ min: 1, max: 7 }), { nil: undefined }),
      fc.subarray(VOTERS, { minLength: 1 }),
      (said, quorum, attached) => {
        const voters = new Set(attached);
        const needed = quorumOf({ quorum, voters });
        const last = new Map<string, string>();
        let state = ballot('consensus', { quorum, voters });
        for (const [voter, vote] of said) {
          const verdict = mediate(state, vote, from(voter));
          if (!voters.has(voter)) {
            expect(verdict.kind).toBe('forbidden');
            continue;
          }
          last.set(voter, choiceOf(vote));
          const largest = Math.max(
            ...[...last.values()].map((one) => [...last.values()].filter((o) => o === one).length),
          );
          expect(verdict.kind).toBe(largest >= needed ? 'resolve' : 'partial');
          if (verdict.kind !== 'partial') return;
          expect(verdict.tally).toMatchObject({
            votesReceived: last.size,
            votesNeeded: needed - largest,
            quorum: needed,
          });
          expect(verdict.tally.votesNeeded).toBeGreaterThan(0);
          state = { ...state, votes: verdict.votes };
        }
      },
    ),
  );
});
