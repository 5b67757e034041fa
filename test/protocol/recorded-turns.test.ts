import { expect, test } from 'vitest';
import { play } from '../support/player.ts';
import { formsOf, recordedTranscript, type Seen, shapeOf } from '../support/recordings.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames and records of every form are changed
type Json = any;

interface Row {
  readonly recording: string;
  readonly placed?: string;
  readonly ids: string;
  /** Where the design overrules the recording: what it makes of the recorded frames and records. */
  readonly frames?: (seen: Seen[]) => Seen[];
  readonly records?: (shapes: Json[]) => Json[];
}

/** RS-3: a submit that chose nothing fails the call, and the model hears so. */
const failsTheCall = {
  frames: (seen: Seen[]) =>
    seen.map((one: Json) => {
      if (one.update?.status === 'completed') {
        const { rawOutput: _, ...update } = one.update;
        const content = [{ type: 'content', content: { type: 'text', text: '<why it failed>' } }];
        return { update: { ...update, status: 'failed', content } };
      }
      const echo = one.update?.content?.text?.startsWith('TOOL RESULT ECHO');
      return echo ? said('TOOL RESULT ECHO: The question was submitted, but no answer was given.') : one;
    }),
  records: (shapes: Json[]) =>
    shapes.map((shape) =>
      shape.record === 'tool_result'
        ? { ...shape, parts: ['error call_mx39nqfn_18_0'], status: 'error', executionStatus: 'not_started' }
        : shape,
    ),
};

/** ACP-7: a cancel withdraws the request and is itself on disk. */
const withdrawn = (seen: Seen[]) =>
  seen.flatMap((one: Json): Seen[] =>
    one.update?.status === 'failed' ? [{ notified: '$/cancel_request' }, one] : [one],
  );
const cancelRecord = (shapes: Json[]) => [...shapes, { record: 'turn_result', back: 1 }];

/** BT-5: what an ordinary prompt closes is closed on disk, before the person's words. */
const closedFirst = (callId: string) => (shapes: Json[]) => {
  const at = shapes.findLastIndex(({ record }) => record === 'user');
  const closing = { record: 'tool_result', back: 1, role: 'user', status: 'error', executionStatus: 'not_started' };
  return shapes.toSpliced(at, 0, { ...closing, parts: [`error ${callId}`] });
};

/** ACP-3: after a resume the request introduces the call. */
const introduced = (seen: Seen[]) =>
  seen.map((one: Json) => {
    if (!one.asked) return one;
    const text = 'Which colour?\n- Red: warm\n- Blue: cold';
    const content = [{ type: 'content', content: { type: 'text', text } }];
    return { asked: { ...one.asked, toolCall: { ...one.asked.toolCall, content } } };
  });

/** ACP-14: a prompt without content is refused, and nothing is written. */
const refused = {
  frames: (seen: Seen[]) => seen.with(-1, { answered: 'session/prompt', error: -32602 }),
  records: (shapes: Json[]) => shapes.slice(0, 4),
};

/** RS-8: the seeds' word for a turn that stopped at its calls. */
const interruptedTurn = (seen: Seen[]) =>
  seen.with(-1, {
    answered: 'qwen/control/session/continue',
    result: { accepted: true, interruption: 'interrupted_turn' },
  });

/** The recorded model was another one: it echoes JSON, and its context is metered in an update that only it has. */
const otherModel = (seen: Seen[]) => {
  const echo = seen.findIndex((one: Json) => one.update?.content?.text?.startsWith('ECHO'));
  const usage: Json = structuredClone(seen[echo + 1]);
  Object.assign(usage.update._meta.usage, { cachedReadTokens: 0, thoughtTokens: 0 });
  return [...seen.slice(0, echo), said('TOOL RESULT ECHO: <answered>:\n\n**Colour**: Blue'), usage, ...seen.slice(-1)];
};

/** The recorded model put something else between two responses. */
const onSeparateLines = (seen: Seen[]) =>
  JSON.parse(JSON.stringify(seen).replace('Blue || <answered>', 'Blue\\n<answered>'));

const said = (text: string): Seen => ({
  update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
});

const C0 = { placed: 'c0.dangling' };
const D0 = { placed: 'd0.dangling' };

const TURNS: readonly Row[] = [
  { recording: 'a1-single', ids: 'RS-2, RS-3' },
  { recording: 'a2-multi', ids: 'RS-2, RS-3' },
  { recording: 'a3-freetext', ids: 'RS-3' },
  { recording: 'a5-cancel-option', ids: 'RS-5' },
  { recording: 'a6-cancelled-outcome', ids: 'RS-5' },
  { recording: 'a7-no-answers', ids: 'RS-3', ...failsTheCall },
  { recording: 'a12-session-cancel', ids: 'RS-6, ACP-7', frames: withdrawn, records: cancelRecord },
  { recording: 'c1-load-restore-answer', ...C0, ids: 'RS-1, RS-2, RS-4' },
  { recording: 'c2-resume-restore-answer', ...C0, ids: 'RS-4, ACP-3', frames: introduced },
  { recording: 'c4-noflag-restore-prompt', ...C0, ids: 'RS-1, ACP-14', ...refused },
  { recording: 'c5-suppress-then-restore-prompt', ...C0, ids: 'RS-1, LS-2' },
  { recording: 'c6-restore-cancel-option', ...C0, ids: 'RS-5' },
  { recording: 'c8-restore-cancel-reason-session_closed', ...C0, ids: 'RS-6' },
  { recording: 'c8-restore-cancel-reason-timeout', ...C0, ids: 'RS-6' },
  { recording: 'c8-restore-cancel-reason-voter_cancelled', ...C0, ids: 'RS-5' },
  { recording: 'c9-restore-session-cancel', ...C0, ids: 'RS-6, ACP-7', frames: withdrawn, records: cancelRecord },
  {
    recording: 'd1-ordinary-prompt-beats-restore',
    ...D0,
    ids: 'RS-9, BT-5',
    records: closedFirst('call_mx39nqfn_48_0'),
  },
  {
    recording: 'd1c-restore-then-ordinary-while-pending',
    ...D0,
    ids: 'ACP-8, BT-5',
    frames: withdrawn,
    records: closedFirst('call_mx39nqfn_48_0'),
  },
  { recording: 'd2b-load-again-after-kill', ...D0, ids: 'RS-4' },
  { recording: 'e1-mixed-load', placed: 'e0-mixed.dangling', ids: 'RS-1, EL-1' },
  { recording: 'e2-two-load-answer-both', placed: 'e0-two.dangling', ids: 'RS-10', frames: onSeparateLines },
  { recording: 'e2b-two-answer-first-then-timeout-second', placed: 'e0-two.dangling', ids: 'RS-6, RS-10' },
  { recording: 'e5-continue-flag-restorable', placed: 'e0-cont.dangling', ids: 'RS-8' },
  { recording: 'e5b-continue-noflag', placed: 'e0-cont.dangling', ids: 'RS-8', frames: interruptedTurn },
  { recording: 'f7-bulk-then-restore-answer', placed: 'f0.dangling', ids: 'RS-4, ACP-11' },
  { recording: 'k2-gemini-restore', placed: 'k1-gemini', ids: 'RS-4, MD-5', frames: otherModel },
];

const asIs = <T>(value: T): T => value;

for (const row of TURNS) {
  test(`[RS-0, TR-1, BT-13, ${row.ids}] ${row.recording}: the exchange and what it leaves on disk`, async () => {
    const { recorded, ours, home, sessionId } = await play(row.recording, row.placed);
    const { frames = asIs, records = asIs } = row;
    expect(ours).toEqual(frames([...recorded]));
    const transcript = recordedTranscript(row.recording);
    expect(shapeOf(home.records(sessionId))).toEqual(records(shapeOf(transcript)));
    const forms = formsOf(transcript);
    const known = [...formsOf(home.records(sessionId))].filter(([kind]) => forms.has(kind));
    expect(known.length).toBeGreaterThan(3);
    expect(known).toEqual(known.map(([kind]) => [kind, forms.get(kind)]));
  });
}
