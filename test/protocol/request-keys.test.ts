import { expect, test } from 'vitest';
import { Home, Peer, RESTORE, SUPPRESS, submit } from '../support/peer.ts';
import { asks, COLOUR, cards, dangling, saidIn } from '../support/sessions.ts';

const question = asks('call_1', COLOUR);

/** Values of a key, and whether they count. */
const VALUES: readonly (readonly [unknown, boolean])[] = [
  [true, true],
  [false, false],
  ['true', false],
  ['yes', false],
  [1, false],
  [null, false],
  [[true], false],
  [{ value: true }, false],
];

test('[LS-2] only the boolean true suppresses, on load, bulk load and resume', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const seen: unknown[] = [];
  for (const [value] of VALUES) {
    const loaded = dangling(home, question);
    const keys = { [SUPPRESS]: value };
    const answers = [
      await peer.load(loaded, keys),
      await peer.load(dangling(home, question), { ...keys, 'qwen.session.loadReplayMode': 'bulk' }),
      await peer.resume(dangling(home, question), keys),
    ];
    seen.push([value, cards(peer, loaded), answers.map(({ _meta }) => RESTORE in _meta)]);
  }
  const expected = VALUES.map(([value, suppressed]) => [
    value,
    [suppressed ? 'failed' : 'in_progress'],
    [!suppressed, !suppressed, !suppressed],
  ]);
  expect(seen).toEqual(expected);
});

test('[LS-2, RS-1, ACP-14] only the boolean true restores; another value is a prompt without content', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  for (const [value, restores] of VALUES) {
    const sessionId = dangling(home, question);
    const before = home.bytes(sessionId);
    await peer.load(sessionId);
    const turn = peer.request('session/prompt', { sessionId, prompt: [], _meta: { [RESTORE]: value } });
    if (restores) (await peer.question()).answer(submit({ 0: 'Red' }));
    const end = await turn.catch(({ code }) => code);
    expect([value, end]).toEqual([value, restores ? { stopReason: 'end_turn' } : -32602]);
    expect(home.bytes(sessionId).equals(before)).toBe(!restores);
  }
  expect(peer.unanswered).toBe(0);
});

test('[LS-5] with the switch off frames and files are equal with and without either key', async () => {
  const home = new Home();
  const peer = await Peer.start({ home });
  const keys = [undefined, { [RESTORE]: true }, { [SUPPRESS]: true }, { [RESTORE]: true, [SUPPRESS]: true }];
  const seen: string[] = [];
  for (const meta of keys) {
    const sessionId = dangling(home, question);
    const from = peer.wire.length;
    await peer.load(sessionId, meta);
    await peer.load(sessionId, { 'qwen.session.loadReplayMode': 'bulk', ...meta });
    await peer.resume(sessionId, meta);
    await peer.request('qwen/session/loadUpdates', { sessionId, cwd: '/srv/project', _meta: meta });
    await peer.request('session/prompt', { sessionId, prompt: [], _meta: meta }).catch(() => {});
    await peer.prompt(sessionId, 'never mind', meta);
    const frames = peer.wire.slice(from).filter(({ dir }) => dir === 'in');
    seen.push(withoutIds(JSON.stringify([frames.map(({ message }) => message), home.records(sessionId)])));
  }
  expect(seen[0]).toContain('PLAIN REPLY');
  expect(seen[0]).not.toContain(RESTORE);
  expect(seen.map((text) => text === seen[0])).toEqual([true, true, true, true]);
});

/** Ids, times and lengths differ from session to session. */
function withoutIds(text: string): string {
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<uuid>')
    .replace(/"(timestamp|event.timestamp|startTime|lastUpdated)":("[^"]*"|\d+)/g, '"$1"')
    .replace(/"(durationMs|duration_ms|ttft_ms|id)":\d+/g, '"$1"')
    .replace(/20\d\d-\d\d-\d\dT[0-9:.]+Z/g, '<time>');
}

test('[RS-1, RS-9, BT-10, K097] a restore prompt with nothing open is end_turn: nothing asked, nothing written', async () => {
  const home = new Home();
  const peer = await Peer.start({ home, restore: true });
  const suppressed = dangling(home, question);
  await peer.load(suppressed, { [SUPPRESS]: true });
  const resumed = dangling(home, question);
  await peer.resume(resumed, { [SUPPRESS]: true });
  const peeked = dangling(home, question);
  await peer.request('qwen/session/loadUpdates', { sessionId: peeked, cwd: '/srv/project' });
  await peer.resume(peeked, { [SUPPRESS]: true });
  const answered = dangling(home, question);
  await peer.load(answered);
  const turn = peer.restore(answered);
  (await peer.question()).answer(submit({ 0: 'Red' }));
  await turn;
  const overtaken = dangling(home, question);
  await peer.load(overtaken);
  await peer.prompt(overtaken, 'never mind');
  const fresh = await peer.newSession();
  const ends: unknown[] = [];
  for (const sessionId of [suppressed, resumed, peeked, answered, overtaken, fresh]) {
    const before = home.bytes(sessionId);
    const said = saidIn(peer, sessionId);
    ends.push(await peer.restore(sessionId));
    expect(home.bytes(sessionId)).toEqual(before);
    expect(saidIn(peer, sessionId)).toBe(said);
  }
  expect(ends).toEqual(Array(6).fill({ stopReason: 'end_turn' }));
  expect(peer.unanswered).toBe(0);
});

test('[RS-1] the content of a restore prompt is ignored with the switch on; without it, it is an ordinary prompt', async () => {
  const home = new Home();
  const on = await Peer.start({ home, restore: true });
  const off = await Peer.start({ home });
  const restored = dangling(home, question);
  await on.load(restored);
  const turn = on.prompt(restored, 'words', { [RESTORE]: true });
  (await on.question()).answer(submit({ 0: 'Red' }));
  await turn;
  const prompted = dangling(home, question);
  await off.load(prompted);
  await off.prompt(prompted, 'words', { [RESTORE]: true });
  const words = [restored, prompted].map((id) => home.bytes(id).includes('words'));
  expect(words).toEqual([false, true]);
  expect(saidIn(on, restored)).toMatch(/TOOL RESULT ECHO.*\n\n\*\*Colour\*\*: Red/);
  expect(saidIn(off, prompted)).toBe('PLAIN REPLY (plain)');
});
