import { describe, expect, test } from 'vitest';
import { DECLINE, type Peer, submit } from '../support/peer.ts';
import { load, loadUpdates, newSession, startAgent } from './agent.ts';
import { comparable } from './compare.ts';
import { until } from './daemon.ts';
import { Place } from './place.ts';
import type { Whose } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: updates of every form
type Json = any;

const HINT = 'qwen.daemon.restoreAskUserQuestion';

/** The sessions that one program wrote, by what happened in them. */
type Written = Readonly<Record<string, string>>;

/** Lets one program write a session of each kind. */
async function write(whose: Whose, place: Place): Promise<Written> {
  const peer = await startAgent(whose, place);
  const written: Record<string, string> = {};
  const played = async (name: string, text: string, ...answers: unknown[]) => {
    const sessionId = await newSession(peer, place);
    written[name] = sessionId;
    const turn = peer.prompt(sessionId, text);
    for (const answer of answers) (await peer.question()).answer(answer);
    await turn;
    await peer.prompt(sessionId, 'and then');
  };
  await played('answered', '[[ask]] hi', submit({ '0': 'Blue' }));
  await played('answered in own words', '[[ask]] hi', submit({ '0': 'a "new" one\nof two lines' }));
  await played('declined', '[[ask]] hi', DECLINE);
  await played('two questions in one call', '[[two]] hi', submit({ '0': 'Red', '1': 'Large' }));
  await played('two calls answered', '[[batch]] hi', submit({ '0': 'Red' }), submit({ '0': 'Large' }));
  await played('two calls, the second declined', '[[batch]] hi', submit({ '0': 'Red' }), DECLINE);
  written['cancelled'] = await cancelled(peer, place);
  Object.assign(written, await compressed(peer, place));
  for (const [name, text] of [
    ['dangling', '[[ask]] hi'],
    ['dangling batch', '[[batch]] hi'],
    ['overtaken', '[[ask]] hi'],
  ] as const) {
    const sessionId = await newSession(peer, place);
    written[name] = sessionId;
    await peer.prompt(sessionId, 'first');
    peer.prompt(sessionId, text).catch(() => {});
    await peer.question();
    await until(() => place.text(sessionId).includes('functionCall'));
  }
  await peer.kill();
  await overtake(whose, place, written['overtaken'] as string);
  return written;
}

/** A session that was compressed, and one that asks behind a compression. */
async function compressed(peer: Peer, place: Place): Promise<Written> {
  const written: Record<string, string> = {};
  for (const name of ['compressed', 'compressed and dangling']) {
    const sessionId = await newSession(peer, place);
    for (const text of ['one', 'two '.repeat(9_000), 'three', 'four', 'five']) await peer.prompt(sessionId, text);
    await peer.prompt(sessionId, '/compress');
    await peer.prompt(sessionId, 'and then');
    expect(place.text(sessionId)).toContain('chat_compression');
    written[name] = sessionId;
  }
  const asking = written['compressed and dangling'] as string;
  peer.prompt(asking, '[[ask]] hi').catch(() => {});
  await peer.question();
  await until(() => place.text(asking).includes('functionCall'));
  return written;
}

async function cancelled(peer: Peer, place: Place): Promise<string> {
  const sessionId = await newSession(peer, place);
  const turn = peer.prompt(sessionId, '[[sleep]]');
  await peer.until(() => peer.said().includes('SLEEPING'));
  await peer.notify('session/cancel', { sessionId });
  await turn;
  await peer.prompt(sessionId, 'and then');
  return sessionId;
}

/** An ordinary prompt to a session whose question still waits. */
async function overtake(whose: Whose, place: Place, sessionId: string): Promise<void> {
  const peer = await startAgent(whose, place);
  await load(peer, place, sessionId);
  await peer.prompt(sessionId, 'never mind');
  await peer.kill('SIGTERM');
}

/** What one program shows of each session: the updates of a load and of loadUpdates, and whether it would ask again. */
async function read(whose: Whose, place: Place, written: Written, restore: boolean): Promise<Record<string, Json>> {
  const peer = await startAgent(whose, place, restore);
  const shown: Record<string, Json> = {};
  for (const [name, sessionId] of Object.entries(written)) {
    const before = place.text(sessionId);
    const listed = await loadUpdates(peer, place, sessionId);
    const { updates, result } = await load(peer, place, sessionId);
    shown[name] = {
      load: updates.map(comparable),
      asksAgain: result._meta?.[HINT] === true,
      loadUpdates: listed.updates.map(comparable),
      startTime: listed.startTime,
      lastUpdated: listed.lastUpdated,
    };
    expect(place.text(sessionId), `${whose} wrote while it read "${name}"`).toBe(before);
  }
  await peer.kill('SIGTERM');
  return shown;
}

/** One asks and dies, the other asks again and goes on, and so on in one session. */
async function inTurns(place: Place, first: Whose): Promise<string> {
  let peer = await startAgent(first, place);
  const sessionId = await newSession(peer, place);
  const second: Whose = first === 'ours' ? 'reference' : 'ours';
  for (const [round, next] of ([second, first, second, first] as const).entries()) {
    const calls = place.text(sessionId).split('functionCall').length;
    peer.prompt(sessionId, round % 2 === 0 ? '[[ask]] hi' : '[[batch]] hi').catch(() => {});
    await peer.question();
    await until(() => place.text(sessionId).split('functionCall').length > calls);
    await peer.kill();
    peer = await startAgent(next, place);
    expect((await load(peer, place, sessionId)).result._meta[HINT]).toBe(true);
    if (round === 1) {
      await peer.prompt(sessionId, 'never mind');
      continue;
    }
    const turn = peer.restore(sessionId);
    (await peer.question()).answer(submit({ '0': `round ${round}` }));
    if (round % 2 === 1) (await peer.question()).answer(DECLINE);
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
    await peer.prompt(sessionId, 'and then');
  }
  await peer.kill('SIGTERM');
  return sessionId;
}

describe.each(['ours', 'reference'] as const)('what %s wrote', (writer) => {
  test('[TR-1, TR-3, ACP-3, ACP-10, LS-1] is shown alike by both, item by item, with the switch and without', async () => {
    const place = await Place.make();
    const written = await write(writer, place);
    for (const restore of [true, false]) {
      const ours = await read('ours', place, written, restore);
      const reference = await read('reference', place, written, restore);
      for (const name of Object.keys(written)) {
        expect.soft(ours[name], `"${name}", ${restore ? 'with' : 'without'} the switch`).toEqual(reference[name]);
      }
      expect(ours['dangling'].asksAgain).toBe(restore);
      expect(ours['dangling batch'].asksAgain).toBe(restore);
      expect(ours['overtaken'].asksAgain).toBe(false);
    }
  });
});

describe.each(['ours', 'reference'] as const)('a session that %s began and both wrote by turns', (first) => {
  test('[TR-1, TR-9, RS-4, BT-5] is shown alike by both, and the model is told every answer once', async () => {
    const place = await Place.make();
    const sessionId = await inTurns(place, first);
    const ours = await read('ours', place, { session: sessionId }, true);
    const reference = await read('reference', place, { session: sessionId }, true);
    expect(ours).toEqual(reference);
    const told = place.model.asked.flatMap(({ responses }) => responses).join('\n');
    for (const round of [0, 2, 3]) expect(told.split(`round ${round}`)).toHaveLength(2);
  });
});
