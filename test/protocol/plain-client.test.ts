import { expect, test } from 'vitest';
import { kinds, responseIds, sent } from '../support/evidence.ts';
import {
  type Asked,
  ask,
  CANCELLED,
  DECLINE,
  Peer,
  type PeerOptions,
  RECORDED_SCRIPT,
  RESTORE,
  SUPPRESS,
  submit,
  unattended,
} from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, FEATURES, resultsOnDisk, saidIn } from '../support/sessions.ts';

const PLAIN = ['--plain-client'];
const start = (options: PeerOptions = {}) => Peer.start({ restore: true, args: PLAIN, ...options });

/** Presses the button of this name. */
function press(asked: Asked, name: string): void {
  const option = asked.params.options.find((each) => each.name === name);
  if (option === undefined) throw new Error(`no button ${name}`);
  asked.answer({ outcome: { outcome: 'selected', optionId: option.optionId } });
}
const answered = (peer: Peer, sessionId: string) =>
  peer.until(() => saidIn(peer, sessionId).includes('TOOL RESULT ECHO'));
const closed = (peer: Peer, from: number) =>
  peer.until(() => sent(peer, 'session/update', from).some(({ params }) => params.update.status === 'failed'));

/** Loads a session with an open question; the child asks of its own accord. */
async function askedAtOnce(peer: Peer, ...questions: unknown[]) {
  const sessionId = dangling(peer.home, asks('call_1', ...(questions.length > 0 ? questions : [COLOUR])));
  const from = peer.wire.length;
  const response = await peer.load(sessionId);
  return { sessionId, from, response, asked: await peer.question() };
}

/** The child has handled all that was sent and asks nothing. */
async function nothingRuns(peer: Peer): Promise<void> {
  await peer.roundTrip();
  expect(peer.unanswered).toBe(0);
}

test('[BT-6, ACP-6, K032] a plain client answers by buttons, one request a question, each under an id of its own', async () => {
  const peer = await start();
  const sessionId = dangling(peer.home, asks('call_1', COLOUR, FEATURES));
  await peer.load(sessionId);
  for (const name of ['Blue', 'Alpha', 'Gamma', 'Done (2)']) {
    const asked = await peer.question();
    expect(asked.params).toMatchObject({ sessionId, toolCall: { toolCallId: 'call_1' } });
    press(asked, name);
  }
  await answered(peer, sessionId);
  expect(saidIn(peer, sessionId)).toContain('**Colour**: Blue\n**Features**: Alpha, Gamma');
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['success/success output']);
  const ids = sent(peer, 'session/request_permission').map(({ id }) => id);
  expect(new Set(ids).size).toBe(4);
});

const FIRST_ASKED: Readonly<Record<string, readonly [(asked: Asked) => void, readonly string[]]>> = {
  'a button': [(asked) => press(asked, 'Red'), ['success/success output']],
  Skip: [(asked) => press(asked, 'Skip'), ['cancelled/not_started error']],
  'the answers in the recorded form': [(asked) => asked.answer(submit({ 0: 'teal' })), ['success/success output']],
  cancelled: [(asked) => asked.answer(CANCELLED), ['cancelled/not_started error']],
  'nobody there': [(asked) => asked.answer(unattended('timeout')), []],
  'an option that was not offered': [
    (asked) => asked.answer({ outcome: { outcome: 'selected', optionId: 'choice_9' } }),
    ['error/not_started/unhandled_exception error'],
  ],
  'an error': [(asked) => asked.refuse(-32601, 'no'), ['error/not_started/unhandled_exception error']],
};

test('[BT-6, RS-3, RS-5, RS-6, RS-7] what a plain client does with a first-asked question', async () => {
  const peer = await start();
  const disk: Record<string, readonly string[]> = {};
  for (const [name, [reply]] of Object.entries(FIRST_ASKED)) {
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    reply(asked);
    expect((await turn).stopReason).toBe('end_turn');
    disk[name] = resultsOnDisk(peer.home, sessionId);
  }
  expect(disk).toEqual(Object.fromEntries(Object.entries(FIRST_ASKED).map(([name, [, end]]) => [name, end])));
});

test('[BT-9, RS-4, K002] after kill -9 a load or resume alone asks again, behind its response, and the turn goes on', async () => {
  for (const attach of ['load', 'resume'] as const) {
    const before = await start();
    const sessionId = await before.newSession();
    await before.askIn(sessionId);
    await before.kill();

    const peer = await start({ home: before.home });
    expect((await peer[attach](sessionId))._meta[RESTORE]).toBe(true);
    const asked = await peer.question();
    const responseAt = peer.wire.findIndex(
      ({ message }) => 'result' in message && '_meta' in (message.result as object),
    );
    const askedAt = peer.wire.findIndex(
      ({ message }) => 'id' in message && 'method' in message && message.id === asked.id,
    );
    expect(responseAt).toBeGreaterThan(0);
    expect(askedAt).toBeGreaterThan(responseAt);
    press(asked, 'Blue');
    await answered(peer, sessionId);
    expect(saidIn(peer, sessionId)).toContain('**Colour**: Blue');
    expect(await peer.prompt(sessionId, 'hello')).toMatchObject({ stopReason: 'end_turn' });
    const ends = kinds(peer.home.records(sessionId)).filter((kind) => !kind.startsWith('system/'));
    expect(ends.slice(-4)).toEqual(['tool_result', 'assistant', 'user', 'assistant']);
  }
});

test('[BT-9] a form is shown on that path too, where the client knows forms', async () => {
  const initialize = { clientCapabilities: { elicitation: { form: {} } } };
  const peer = await start({ initialize });
  const sessionId = dangling(peer.home, asks('call_1', COLOUR));
  await peer.load(sessionId);
  (await peer.form()).answer({ action: 'decline' });
  await closed(peer, 0);
  await peer.resume(sessionId);
  (await peer.form()).answer({ action: 'accept', content: { question_1: 'Red' } });
  await answered(peer, sessionId);
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['success/success output']);
});

const REFUSALS: Readonly<Record<string, (asked: Asked) => void>> = {
  cancelled: (asked) => asked.answer(CANCELLED),
  'a reason': (asked) => asked.answer(unattended('session_closed')),
  Skip: (asked) => press(asked, 'Skip'),
  'the recorded decline': (asked) => asked.answer(DECLINE),
  'method not found': (asked) => asked.refuse(-32601, 'Method not found'),
  'an internal error': (asked) => asked.refuse(-32603, 'no'),
  'a malformed outcome': (asked) => asked.answer({ outcome: 'no' }),
  'an option that was not offered': (asked) => asked.answer({ outcome: { outcome: 'selected', optionId: 'x' } }),
};

test('[BT-9, BT-10, RS-6] a refusal or error to what the client had not asked for decides nothing: the next load asks again', async () => {
  const peer = await start();
  for (const [name, refuse] of Object.entries(REFUSALS)) {
    const { sessionId, from, asked } = await askedAtOnce(peer);
    refuse(asked);
    await closed(peer, from);
    expect(responseIds(peer.home.records(sessionId)), name).toEqual([]);
    expect((await peer.load(sessionId))._meta[RESTORE], name).toBe(true);
    press(await peer.question(), 'Red');
    await answered(peer, sessionId);
    expect(resultsOnDisk(peer.home, sessionId), name).toEqual(['success/success output']);
  }
});

test('[BT-9, RS-5] a restore prompt of the client joins the turn: it gets its result, and its refusal is a decline', async () => {
  const peer = await start();
  for (const [name, disk] of [
    ['Blue', 'success/success output'],
    ['Skip', 'cancelled/not_started error'],
  ] as const) {
    const { sessionId, asked } = await askedAtOnce(peer);
    const joined = peer.restore(sessionId);
    await peer.roundTrip();
    expect(peer.unanswered).toBe(0);
    press(asked, name);
    expect(await joined).toEqual({ stopReason: 'end_turn' });
    expect(resultsOnDisk(peer.home, sessionId)).toEqual([disk]);
    expect(saidIn(peer, sessionId).includes('TOOL RESULT ECHO')).toBe(name === 'Blue');
  }
});

test('[BT-9, RS-9, BT-5, K078] an ordinary prompt supersedes the turn, and whoever had joined it is told', async () => {
  const peer = await start();
  for (const joins of [false, true]) {
    const { sessionId, asked } = await askedAtOnce(peer);
    const joined = joins ? peer.restore(sessionId) : undefined;
    expect(await peer.prompt(sessionId, 'hello')).toMatchObject({ stopReason: 'end_turn' });
    expect(await joined).toEqual(joins ? { stopReason: 'cancelled' } : undefined);
    expect(asked.signal.aborted).toBe(true);
    expect(responseIds(peer.home.records(sessionId))).toEqual(['call_1']);
    expect(saidIn(peer, sessionId)).toBe('PLAIN REPLY (plain)');
    expect((await peer.load(sessionId))._meta).not.toHaveProperty(RESTORE);
  }
  await nothingRuns(peer);
});

test('[BT-9, LS-2, ACP-10, BT-2] what starts nothing: loadUpdates, a suppressed load, nothing open, a second load', async () => {
  const peer = await start();
  const sessionId = dangling(peer.home, asks('call_1', COLOUR));
  const cwd = '/srv/project';
  await peer.request('qwen/session/loadUpdates', { sessionId, cwd });
  await nothingRuns(peer);
  for (const attach of ['load', 'resume'] as const) {
    expect((await peer[attach](sessionId, { [SUPPRESS]: true }))._meta).not.toHaveProperty(RESTORE);
    await nothingRuns(peer);
  }
  await peer.load(await peer.newSession());
  await nothingRuns(peer);

  const hints = (await Promise.all([peer.load(sessionId), peer.load(sessionId), peer.resume(sessionId)])).map(
    ({ _meta }) => _meta[RESTORE] === true,
  );
  expect(hints.filter(Boolean).length).toBeGreaterThan(0);
  const asked = await peer.question();
  await nothingRuns(peer);
  press(asked, 'Red');
  await answered(peer, sessionId);
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['success/success output']);
  await nothingRuns(peer);
});

test('[BT-9, BT-13] without the switch, without the option and for a daemon a load asks nothing', async () => {
  const daemon = { clientInfo: { name: 'qwen-serve-bridge', version: '1' } };
  for (const options of [{ restore: false }, { args: [] }, { initialize: daemon }]) {
    const peer = await start(options);
    const sessionId = dangling(peer.home, asks('call_1', COLOUR));
    await peer.load(sessionId);
    await nothingRuns(peer);
    if (!('initialize' in options)) continue;
    const turn = peer.restore(sessionId);
    const asked = await peer.question();
    expect(asked.params.options.map(({ name }) => name)).toEqual(['Submit', 'Cancel']);
    asked.answer(submit({ 0: 'Red' }));
    expect(await turn).toEqual({ stopReason: 'end_turn' });
  }
});

test('[BT-9, BT-1, ACP-7] cancel, close, SIGTERM and EOF end the turn and leave the question open', async () => {
  const ends: Readonly<Record<string, (peer: Peer, sessionId: string) => Promise<unknown>>> = {
    cancel: async (peer, sessionId) => {
      // Who has joined the turn hears when it is over.
      const joined = peer.restore(sessionId);
      await peer.notify('session/cancel', { sessionId });
      return await joined;
    },
    close: (peer, sessionId) => peer.request('session/close', { sessionId }),
    SIGTERM: (peer) => peer.kill('SIGTERM'),
    EOF: (peer) => peer.eof(),
  };
  let peer = await start();
  for (const [name, end] of Object.entries(ends)) {
    const { sessionId, from, asked } = await askedAtOnce(peer);
    const size = peer.home.bytes(sessionId).length;
    const ended = await end(peer, sessionId);
    if (name === 'SIGTERM' || name === 'EOF') {
      expect(ended, name).toEqual({ code: 0, signal: null });
      expect(peer.home.bytes(sessionId).length, name).toBe(size);
      peer = await start({ home: peer.home });
    } else {
      expect(ended, name).toEqual(name === 'cancel' ? { stopReason: 'cancelled' } : {});
      expect(sent(peer, 'session/update', from).at(-1)?.params.update.status, name).toBe('failed');
      expect(asked.signal.aborted, name).toBe(true);
    }
    expect(responseIds(peer.home.records(sessionId)), name).toEqual([]);
    await peer.load(sessionId);
    press(await peer.question(), 'Red');
    await answered(peer, sessionId);
  }
});

test('[BT-9] a turn that fails behind the answer says so, as no response will', async () => {
  const failing = { steps: [{ fault: 'rate_limit', status: 429, message: 'too much' }] };
  const script = { ...RECORDED_SCRIPT, rules: [failing] };
  const peer = await start({ script });
  const { sessionId, asked } = await askedAtOnce(peer);
  press(asked, 'Red');
  await peer.until(() => saidIn(peer, sessionId).includes('too much'));
  expect(resultsOnDisk(peer.home, sessionId)).toEqual(['success/success output']);
  expect(cards(peer, sessionId)).toEqual(['completed']);
  expect(await peer.request('qwen/control/session/continue', { sessionId })).toMatchObject({
    interruption: 'interrupted_turn',
  });
});

test('[BT-6, BT-13] a daemon is sent the same frames with the option and forms as without', async () => {
  const frames: string[] = [];
  const script = { ...RECORDED_SCRIPT, rules: RECORDED_SCRIPT.rules.map((rule) => withFixedIds(rule)) };
  const clientInfo = { name: 'qwen-serve-bridge', version: '1' };
  for (const options of [
    { args: [], initialize: { clientInfo } },
    { initialize: { clientInfo, clientCapabilities: { elicitation: { form: {} } } } },
  ]) {
    const peer = await start({ ...options, script });
    const sessionId = await peer.newSession();
    const { turn, asked } = await peer.askIn(sessionId);
    asked.answer(submit({ 0: 'Red' }));
    await turn;
    await peer.load(sessionId);
    frames.push(
      ...sent(peer, 'session/request_permission').map(({ params }) =>
        JSON.stringify(params).replaceAll(sessionId, 'SESSION'),
      ),
      cards(peer, sessionId).join(),
    );
  }
  expect(frames.slice(0, 2)).toEqual(frames.slice(2));
});

/** The recorded rules with a call id that is the same in every process. */
function withFixedIds(rule: object): object {
  const steps = (rule as { steps: object[] }).steps.map((step) =>
    'call' in step ? { ...ask('Which colour?', 'Colour', ['Red', 'Blue']), id: 'call_1' } : step,
  );
  return { ...rule, steps };
}
