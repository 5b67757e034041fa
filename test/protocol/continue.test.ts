import { expect, test } from 'vitest';
import { DECLINE, Home, Peer, RECORDED_SCRIPT, RESTORE, SUPPRESS, submit, unattended } from '../support/peer.ts';
import {
  asks,
  COLOUR,
  call,
  cards,
  dangling,
  modelSays,
  place,
  saidIn,
  system,
  toolAnswers,
  userSays,
} from '../support/sessions.ts';

const question = asks('call_1', COLOUR);
const readFile = call('call_2', 'read_file', { file_path: '/srv/project/a.txt' });
const CONTINUE = { 'qwen.daemon.continueLastTurn': true };

const continuable = (peer: Peer, sessionId: string) =>
  peer.request('qwen/control/session/continue', { sessionId }) as Promise<{ accepted: boolean; interruption: string }>;
const goOn = (peer: Peer, sessionId: string) =>
  peer.request('session/prompt', { sessionId, prompt: [], _meta: CONTINUE });

const NONE = { accepted: false, interruption: 'none' };
const TURN = { accepted: true, interruption: 'interrupted_turn' };
const PROMPT = { accepted: true, interruption: 'interrupted_prompt' };

/** Saved sessions, loaded with the switch on: what `continue` says of each. */
const SAVED: Readonly<Record<string, readonly [(home: Home) => string, typeof NONE]>> = {
  'a restorable question': [(home) => dangling(home, question), NONE],
  'two restorable questions': [(home) => dangling(home, question, asks('call_2', COLOUR)), NONE],
  'a question with another tool': [(home) => dangling(home, question, readFile), TURN],
  'another tool': [(home) => dangling(home, readFile), TURN],
  'a question that cannot be read': [(home) => dangling(home, asks('call_1')), TURN],
  'an answer that the model has not seen': [
    (home) => place(home, userSays('go'), modelSays(question), toolAnswers('call_1', { output: 'Red' })),
    TURN,
  ],
  'half of a batch persisted': [
    (home) => place(home, userSays('go'), modelSays(question, readFile), toolAnswers('call_1', { output: 'Red' })),
    TURN,
  ],
  'a user message without a reply': [(home) => place(home, userSays('go'), system('file_history_snapshot')), PROMPT],
  'a later user message without a reply': [
    (home) => place(home, userSays('go'), modelSays({ text: 'done' }), userSays('and now?')),
    PROMPT,
  ],
  'a finished turn': [(home) => place(home, userSays('go'), modelSays({ text: 'done' })), NONE],
  'a declined question': [
    (home) => place(home, userSays('go'), modelSays(question), toolAnswers('call_1', { error: 'declined' })),
    NONE,
  ],
  'a turn that a person cancelled': [
    (home) => place(home, userSays('go'), system('turn_result', { promptId: 'p', state: 'cancelled' })),
    NONE,
  ],
  'a prompt after a cancelled turn': [
    (home) =>
      place(home, userSays('go'), system('turn_result', { promptId: 'p', state: 'cancelled' }), userSays('again')),
    PROMPT,
  ],
};

test('[RS-8] what continue says of a saved session, and what the continue turn does with it', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const said: Record<string, unknown> = {};
  for (const [name, [make]] of Object.entries(SAVED)) {
    const sessionId = make(home);
    await peer.load(sessionId);
    said[name] = await continuable(peer, sessionId);
    await checkTurn(peer, sessionId, said[name] as typeof NONE);
    said[name] = [said[name], await continuable(peer, sessionId)];
  }
  expect(said).toEqual(Object.fromEntries(Object.entries(SAVED).map(([name, [, verdict]]) => [name, [verdict, NONE]])));
});

/** The continue turn writes no user message, and does nothing at all where nothing was interrupted. */
async function checkTurn(peer: Peer, sessionId: string, { interruption }: typeof NONE): Promise<void> {
  const before = peer.home.records(sessionId);
  const said = saidIn(peer, sessionId);
  const end = await goOn(peer, sessionId);
  const added = peer.home.records(sessionId).slice(before.length);
  const kinds = added.map(({ type, subtype }) => subtype ?? type).filter((kind) => kind !== 'tool_result');
  expect(end.stopReason).toBe('end_turn');
  if (interruption === 'none') {
    expect(added).toEqual([]);
    return;
  }
  expect(kinds).toEqual(['file_history_snapshot', 'ui_telemetry', 'assistant', 'branch_checkpoint']);
  expect(end._meta['qwen.branchPoint']).toEqual({
    assistantRecordUuid: added.at(-2).uuid,
    checkpointUuid: added.at(-1).uuid,
  });
  const reply = interruption === 'interrupted_turn' ? 'TOOL RESULT ECHO: ' : 'PLAIN REPLY';
  expect(saidIn(peer, sessionId).slice(said.length)).toMatch(reply);
}

test('[RS-8] with the switch off, suppressed, or after an answer was lost, a question is an interrupted turn', async () => {
  const home = new Home();
  const off = await Peer.start({ home });
  const on = await Peer.start({ home, restore: true });
  const loadedOff = dangling(home, question);
  await off.load(loadedOff);
  const suppressed = dangling(home, question);
  await on.load(suppressed, { [SUPPRESS]: true });
  const verdicts = [await continuable(off, loadedOff), await continuable(on, suppressed)];
  expect(verdicts).toEqual([TURN, TURN]);
  await goOn(off, loadedOff);
  await goOn(on, suppressed);
  for (const [peer, sessionId] of [
    [off, loadedOff],
    [on, suppressed],
  ] as const) {
    expect(saidIn(peer, sessionId)).toMatch(/^TOOL RESULT ECHO: /);
    expect(home.records(sessionId).filter(({ type }) => type === 'tool_result')).toMatchObject([
      { message: { parts: [{ functionResponse: { id: 'call_1', response: { error: expect.any(String) } } }] } },
    ]);
  }
  expect(cards(on, suppressed)).toEqual(['failed']);
});

test('[RS-8, RS-9] while a question waits, first asked or again, nothing is continued and the question stays', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const first = await peer.newSession();
  const again = dangling(home, question);
  await peer.load(again);
  for (const sessionId of [first, again]) {
    const turn = sessionId === first ? peer.prompt(first, '[[ask1]]') : peer.restore(again);
    const asked = await peer.question();
    expect((await continuable(peer, sessionId)).accepted).toBe(false);
    expect(await goOn(peer, sessionId)).toEqual({ stopReason: 'end_turn' });
    expect(await peer.restore(sessionId)).toEqual({ stopReason: 'end_turn' });
    expect([peer.unanswered, asked.signal.aborted]).toEqual([0, false]);
    asked.answer(submit({ 0: 'Red' }));
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
    expect(saidIn(peer, sessionId)).toMatch(/\*\*Colour\*\*: Red$/);
  }
});

test('[RS-8] how live turns end is what continue says', async () => {
  const fault = { when: { text: '[[fault]]' }, steps: [{ fault: 'bad_request' }] };
  const script = { rules: [fault, ...RECORDED_SCRIPT.rules] };
  const peer = await Peer.start({ restore: true, script });
  const verdicts: Record<string, unknown> = {};
  const fresh = await peer.newSession();
  verdicts['nothing yet'] = await continuable(peer, fresh);
  await peer.prompt(fresh, 'hello');
  verdicts['finished'] = await continuable(peer, fresh);
  const { turn, asked } = await peer.askIn(fresh);
  asked.answer(DECLINE);
  await turn;
  verdicts['declined'] = await continuable(peer, fresh);
  await peer.prompt(fresh, '[[fault]]').catch(() => {});
  verdicts['failed'] = await continuable(peer, fresh);
  const second = await peer.askIn(fresh);
  await peer.notify('session/cancel', { sessionId: fresh });
  await second.turn;
  verdicts['cancelled'] = await continuable(peer, fresh);
  expect(verdicts).toEqual({ 'nothing yet': NONE, finished: NONE, declined: NONE, failed: PROMPT, cancelled: NONE });
});

test('[TR-10, RS-4] a prompt and a continue write one file-history snapshot each, a restore none', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const sessionId = home.place('c0.dangling');
  const snapshots = () =>
    home
      .records(sessionId)
      .flatMap(({ subtype, systemPayload }) =>
        subtype === 'file_history_snapshot' ? [systemPayload.snapshots[0].promptId.split('########')[1]] : [],
      );
  expect((await peer.load(sessionId))._meta[RESTORE]).toBe(true);
  const turn = peer.restore(sessionId);
  (await peer.question()).answer(submit({ 0: 'Red' }));
  await turn;
  expect(snapshots()).toEqual(['1']);
  await peer.prompt(sessionId, 'one');
  const { turn: asking, asked } = await peer.askIn(sessionId);
  asked.answer(unattended('timeout'));
  await asking;
  await goOn(peer, sessionId);
  // The restore had number 2.
  expect(snapshots()).toEqual(['1', '3', '4', '5']);
});
