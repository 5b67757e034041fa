import { expect, test } from 'vitest';
import { type Deviation, playHttp } from '../support/http-player.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every form
type Json = any;

const to =
  (pattern: RegExp, more: (body: Json, nth: number) => boolean = () => true): Deviation['when'] =>
  ({ method, path, body }, nth) =>
    pattern.test(`${method} ${path}`) && more(body, nth);
const answers = (change: object) => (recorded: Json) => ({ ...recorded, body: { ...recorded.body, ...change } });

/** A submit without a valid answer is refused, and the question still waits (BT-12). */
const REFUSED_VOTES: Deviation = {
  when: to(/permission/, (body) => {
    const { outcome, answers: given } = body ?? {};
    const isValid = given?.constructor === Object && typeof given['0'] === 'string';
    return outcome?.optionId === 'proceed_once' && !isValid;
  }),
  instead: (recorded) => ({
    ...recorded,
    status: 400,
    body: { error: '<words>', code: 'invalid_answers', requestId: '<id>' },
  }),
  thenDecline: true,
};

/** After a load without a client, a later one with a client asks again in the same daemon (BT-10). */
const ASKED_AFTER_ALL: readonly Deviation[] = [
  { when: to(/resume/), instead: answers({ hasActivePrompt: true }) },
  {
    when: to(/status/, (_, nth) => nth === 6),
    instead: (recorded) => ({
      ...recorded,
      body: expect.objectContaining({ isWaitingForUserQuestion: true, hasActivePrompt: true, clientCount: 2 }),
    }),
  },
];

/** The seeds' word for a turn whose calls have no response (RS-8). */
const INTERRUPTED_TURN: Deviation = {
  when: to(/continue/, (_, nth) => nth > 5),
  instead: answers({ interruption: 'interrupted_turn' }),
};

test.each<[string, string, readonly Deviation[], number[]?]>([
  ['h1', 'DM-1, DM-2, DM-11', []],
  ['h2-crash-load-vote', 'DM-1, DM-2, DM-3, DM-7', []],
  ['h5-vote-errors', 'DM-1, DM-7, BT-12', [REFUSED_VOTES]],
  ['i1-load-no-client-id', 'DM-3, DM-4, BT-10', ASKED_AFTER_ALL],
  ['i10-smuggle', 'DM-5', []],
  ['i11-continue', 'DM-1, RS-8', [INTERRUPTED_TURN]],
  ['i2-resume', 'DM-1, DM-3', []],
  ['i3-flag-off-daemon', 'DM-4', []],
  ['i4-cancel-restored', 'DM-7', []],
  ['i9-prompt-while-restored', 'DM-1, RS-9', []],
  ['j4-sse', 'DM-1, DM-9', [], [2]],
  ['j5-branch', 'DM-1', []],
  ['j6-bodies', 'DM-1', []],
  ['j8-paged', 'DM-1', []],
])('%s is answered as recorded [%s]', async (name, _ids, deviations, resumed) => {
  const { exchanges, events } = await playHttp(name, deviations, resumed);
  expect(exchanges.length).toBeGreaterThan(1);
  expect(exchanges.map(({ request, ours }) => ({ request, answer: ours }))).toEqual(
    exchanges.map(({ request, recorded }) => ({ request, answer: recorded })),
  );
  for (const { ours, recorded } of events) expect(ours).toEqual(recorded);
});
