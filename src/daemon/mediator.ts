import type { Caller, PermissionStrategy, Vote } from './ports.ts';
import { choiceOf, declines } from './votes.ts';

/** Whose word counts, and what has been said so far. */
export interface Ballot {
  readonly strategy: PermissionStrategy;
  /** Of `consensus`; undefined for a majority. */
  readonly quorum: number | undefined;
  readonly originatorClientId: string | undefined;
  /** Client ids that were attached when the request was issued. */
  readonly voters: ReadonlySet<string>;
  /** The last vote of each voter, under its client id. */
  readonly votes: ReadonlyMap<string, Vote>;
  readonly resolved: boolean;
}

export interface Tally {
  readonly votesReceived: number;
  /** How many more must agree with the largest group. */
  readonly votesNeeded: number;
  readonly quorum: number;
  /** Voters per option; what they answered is not told. */
  readonly optionTallies: Readonly<Record<string, number>>;
}

export type ForbiddenReason = 'designated_mismatch' | 'remote_not_allowed';

export type Verdict =
  | { readonly kind: 'resolve' }
  | { readonly kind: 'partial'; readonly votes: ReadonlyMap<string, Vote>; readonly tally: Tally }
  | { readonly kind: 'forbidden'; readonly reason: ForbiddenReason }
  | { readonly kind: 'already_resolved' };

/** What a vote, checked and in canonical form, does to its request. */
export function mediate(ballot: Ballot, vote: Vote, caller: Caller): Verdict {
  if (ballot.resolved) return { kind: 'already_resolved' };
  if (declines(vote)) return { kind: 'resolve' };
  switch (ballot.strategy) {
    case 'first-responder':
      return { kind: 'resolve' };
    case 'local-only':
      return caller.loopback ? { kind: 'resolve' } : { kind: 'forbidden', reason: 'remote_not_allowed' };
    case 'designated':
      return ballot.originatorClientId === undefined || caller.clientId === ballot.originatorClientId
        ? { kind: 'resolve' }
        : { kind: 'forbidden', reason: 'designated_mismatch' };
    case 'consensus':
      return count(ballot, vote, caller.clientId);
  }
}

function count(ballot: Ballot, vote: Vote, voter: string | undefined): Verdict {
  // Nobody was there who could ever agree, so whoever comes decides.
  if (ballot.voters.size === 0) return { kind: 'resolve' };
  if (voter === undefined || !ballot.voters.has(voter)) return { kind: 'forbidden', reason: 'designated_mismatch' };
  const votes = new Map(ballot.votes).set(voter, vote);
  const quorum = quorumOf(ballot);
  const agreeing = [...votes.values()].filter((other) => choiceOf(other) === choiceOf(vote)).length;
  return agreeing >= quorum ? { kind: 'resolve' } : { kind: 'partial', votes, tally: tallyOf(votes, quorum) };
}

/** A majority of the voters unless a number is set; never more than there are voters, nor less than one. */
export function quorumOf({ quorum, voters }: Pick<Ballot, 'quorum' | 'voters'>): number {
  return Math.max(1, Math.min(quorum ?? Math.floor(voters.size / 2) + 1, voters.size));
}

function tallyOf(votes: ReadonlyMap<string, Vote>, quorum: number): Tally {
  const choices = new Map<string, number>();
  const options = new Map<string, number>();
  for (const vote of votes.values()) {
    if (vote.kind === 'cancelled') continue;
    const choice = choiceOf(vote);
    choices.set(choice, (choices.get(choice) ?? 0) + 1);
    options.set(vote.optionId, (options.get(vote.optionId) ?? 0) + 1);
  }
  return {
    votesReceived: votes.size,
    votesNeeded: quorum - Math.max(0, ...choices.values()),
    quorum,
    optionTallies: Object.fromEntries(options),
  };
}
