import { expect, test } from 'vitest';
import { type Played, play } from '../support/player.ts';
import { recordedTranscript } from '../support/recordings.ts';

interface Row {
  readonly recording: string;
  readonly placed: string;
  readonly ids: string;
}

const LOADS: readonly Row[] = [
  { recording: 'b1-load-noflag', placed: 'b0.dangling', ids: 'LS-5' },
  { recording: 'b2-load-flag', placed: 'b0.dangling', ids: 'LS-1, EL-1' },
  { recording: 'b3-load-flag-suppress', placed: 'b0.dangling', ids: 'LS-2' },
  { recording: 'b4-resume-noflag', placed: 'b0.dangling', ids: 'LS-5' },
  { recording: 'b5-resume-flag', placed: 'b0.dangling', ids: 'LS-1, LS-3' },
  { recording: 'b6-resume-flag-suppress', placed: 'b0.dangling', ids: 'LS-2' },
  { recording: 'b7-loadUpdates-noflag', placed: 'b0.dangling', ids: 'ACP-10' },
  { recording: 'b8-loadUpdates-flag', placed: 'b0.dangling', ids: 'ACP-10, LS-4' },
  { recording: 'f1-bulk-flag', placed: 'f0.dangling', ids: 'ACP-11, LS-3' },
  { recording: 'f2-bulk-flag-suppress', placed: 'f0.dangling', ids: 'ACP-11, LS-2' },
];

for (const row of LOADS) {
  test(`[TR-1, TR-3, ACP-3, ${row.ids}] ${row.recording}: frames as recorded, file untouched`, async () => {
    const { recorded, ours, home, sessionId } = await play(row.recording, row.placed);
    expect(ours).toEqual(recorded);
    expect(home.records(sessionId)).toEqual(recordedTranscript(row.placed));
  });
}

/** Loads that are the beginning of a longer exchange: all up to and with the answer. */
const BEGINNINGS: readonly Row[] = [
  { recording: 'e1-mixed-load', placed: 'e0-mixed.dangling', ids: 'EL-1, LS-1' },
  { recording: 'e2-two-load-answer-both', placed: 'e0-two.dangling', ids: 'EL-1, LS-1' },
  { recording: 'e5b-continue-noflag', placed: 'e0-cont.dangling', ids: 'LS-5' },
  { recording: 'k2-gemini-restore', placed: 'k1-gemini', ids: 'MD-5, LS-1' },
];

const loadOf = (seen: Played['ours']) =>
  seen.slice(0, seen.findIndex((one) => 'answered' in one && one.answered === 'session/load') + 1);

for (const { recording, placed, ids } of BEGINNINGS) {
  test(`[TR-1, ACP-3, ${ids}] ${recording}: its load as recorded`, async () => {
    const { recorded, ours } = await play(recording, placed);
    expect(loadOf(ours)).toEqual(loadOf(recorded));
    expect(loadOf(ours).length).toBeGreaterThan(3);
  });
}
