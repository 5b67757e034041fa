import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { expectPaired, geminiPeer, seenBy } from '../support/gemini-peer.ts';
import { Home, Peer, RESTORE, submit } from '../support/peer.ts';
import { asks, COLOUR } from '../support/sessions.ts';
import { SESSION, Writer } from '../support/transcripts.ts';

const content = (role: string, ...parts: object[]) => ({ role, parts });
const summary = [content('user', { text: 'what came before' }), content('model', { text: 'I see' })];
const QUESTION = content('model', asks('c1', COLOUR));

/** Longer than what is read of a file's end at first. */
const LONG = 60;

/** A conversation of so many turns; the last is `u1`. */
function talk(turns: number): Writer {
  const writer = new Writer();
  for (let turn = 0; turn < turns; turn++) {
    writer.user(`old-u${turn}`, 'x'.repeat(2_000)).says(`old-a${turn}`, 'y'.repeat(2_000));
  }
  return writer.user('u1', 'go');
}

const ask = (writer: Writer, parentUuid?: string): Writer =>
  writer.add('q', 'assistant', { message: QUESTION, ...(parentUuid && { parentUuid }) } as never);

function place(home: Home, transcript: Writer): string {
  const id = randomUUID();
  mkdirSync(dirname(home.file(id)), { recursive: true });
  writeFileSync(home.file(id), transcript.text().replaceAll(SESSION, id));
  return id;
}

/** Tails, and what the model sees at the end: of the answer where the question is asked, else of the prompt `next`. */
const TAILS: readonly (readonly [string, (talk: Writer) => Writer, 'asked' | 'gone', readonly string[]])[] = [
  [
    'a question that a compression left out',
    (talk) => ask(talk).system('c', 'chat_compression', { compressedHistory: summary }),
    'gone',
    ['user: what came before', 'model: I see', 'user: next'],
  ],
  [
    'a question after a compression',
    (talk) => ask(talk.system('c', 'chat_compression', { compressedHistory: summary }).user('u2', 'and now?')),
    'asked',
    ['user: what came before', 'model: I see', 'user: and now?', 'model: call c1', 'user: c1 **Colour**: Red'],
  ],
  [
    'a question that the compressed history ends with',
    (talk) => ask(talk).system('c', 'chat_compression', { compressedHistory: [summary[0], QUESTION] }),
    'asked',
    ['user: what came before', 'model: call c1', 'user: c1 **Colour**: Red'],
  ],
  [
    'a compression to nothing',
    (talk) => ask(talk).system('c', 'chat_compression', { compressedHistory: [] }),
    'gone',
    ['user: next'],
  ],
  [
    'a question that was rewound',
    (talk) => ask(talk).system('w', 'rewind', { truncatedCount: 1 }, { parentUuid: 'u1' }),
    'gone',
    ['user: go', 'user: next'],
  ],
  [
    'a rewind to the question',
    (talk) =>
      ask(talk).user('x', 'no').says('y', 'hm').system('w', 'rewind', { truncatedCount: 2 }, { parentUuid: 'q' }),
    'asked',
    ['user: go', 'model: call c1', 'user: c1 **Colour**: Red'],
  ],
  [
    'a question on an abandoned branch',
    (talk) => ask(talk).says('y', 'other', { parentUuid: 'u1' }),
    'gone',
    ['user: go', 'model: other', 'user: next'],
  ],
  [
    'a question beside an abandoned branch',
    (talk) => ask(talk.says('x', 'other').user('x2', 'no'), 'u1'),
    'asked',
    ['user: go', 'model: call c1', 'user: c1 **Colour**: Red'],
  ],
  [
    'an answer beside the chain',
    (talk) => ask(talk).result('r', 'c1', 'Blue').system('s', 'ui_telemetry', {}, { parentUuid: 'q' }),
    'gone',
    ['user: go', 'model: call c1', 'user: c1 Blue', 'user: next'],
  ],
];

test.each([
  ['short', 0],
  ['long', LONG],
])(
  '[TR-2, EL-3, LS-3, TR-3, LS-6] what the end of a %s file says of its question: by load, by resume, in bulk and to the model',
  async (_, turns) => {
    const { server, home, peer } = await geminiPeer();
    const bulk = { 'qwen.session.loadReplayMode': 'bulk' };
    for (const [name, tail, fate, expected] of TAILS) {
      const loads = [
        (id: string) => peer.resume(id),
        (id: string) => peer.load(id, bulk),
        (id: string) => peer.load(id, { ...bulk, 'qwen.session.loadReplayPageSize': 1 }),
        (id: string) => peer.load(id),
      ];
      let id = '';
      for (const load of loads) {
        // Each its own session: a live one would answer from memory.
        id = place(home, tail(talk(turns)));
        const before = home.bytes(id);
        expect((await load(id))._meta[RESTORE], name).toBe(fate === 'asked' ? true : undefined);
        expect(home.bytes(id).equals(before), name).toBe(true);
      }
      if (fate === 'asked') {
        const turn = peer.restore(id);
        (await peer.question()).answer(submit({ 0: 'Red' }));
        expect(await turn, name).toEqual({ stopReason: 'end_turn' });
      } else {
        expect(await peer.restore(id), name).toEqual({ stopReason: 'end_turn' });
        await peer.prompt(id, 'next');
      }
      const { body } = server.requests.at(-1) as (typeof server.requests)[number];
      const compressed = tail(talk(turns)).records.some(({ subtype }) => subtype === 'chat_compression');
      expect(seenBy(body).slice(compressed ? 0 : 2 * turns), name).toEqual(expected);
      expectPaired(body);
    }
  },
);

test('[TR-4] damage far from the end of a long file is warned of once, by the load that reads all of it', async () => {
  const home = new Home();
  const lines = ask(talk(LONG)).lines();
  const id = randomUUID();
  home.write(
    id,
    [...lines.slice(0, 3), 'junk', '{"more junk', ...lines.slice(3)].map((line) => line.replaceAll(SESSION, id)),
  );
  const peer = await Peer.start({ home, restore: true });
  expect((await peer.resume(id))._meta[RESTORE]).toBe(true);
  expect((await peer.load(id))._meta[RESTORE]).toBe(true);
  await peer.load(id);
  await peer.eof();
  expect(peer.stderr.match(/damaged: .*/g)).toEqual(['damaged: 2 lines cannot be read, 0 records are missing']);
});
