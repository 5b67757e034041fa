import type { Content, Part } from '@google/genai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commandOf, parseCommand } from '../../src/session/commands.ts';
import { compressedContents, conversationText, planCompression, sizeOf } from '../../src/session/compression.ts';
import { danglingCalls } from '../../src/session/dangling.ts';
import { findRestorableAskUserQuestion } from '../../src/session/eligibility.ts';
import { foldHistory } from '../../src/session/history.ts';
import { pairCalls } from '../../src/session/pairing.ts';
import { contextEvent, isFull } from '../../src/session/room.ts';
import { asks, COLOUR } from '../support/sessions.ts';
import { Writer } from '../support/transcripts.ts';

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] });
const says = (text: string): Content => ({ role: 'model', parts: [{ text }] });
const calls = (...ids: string[]): Content => ({
  role: 'model',
  parts: ids.map((id) => ({ functionCall: { id, name: 'glob', args: {} } })),
});
const answers = (...ids: string[]): Content => ({
  role: 'user',
  parts: ids.map((id) => ({ functionResponse: { id, name: 'glob', response: { output: 'x' } } })),
});
const asked: Content = { role: 'model', parts: [asks('q', COLOUR)] };
const long = (text: string) => user(text.repeat(500));

describe('[TR-2, TR-9, K065] what a compression cuts off', () => {
  test.each<[string, Content[], number | undefined]>([
    ['nothing of an empty history', [], undefined],
    ['nothing of one message', [user('a')], undefined],
    ['nothing of a turn that goes on', [user('a'), calls('x'), answers('x')], undefined],
    ['nothing of a first turn that waits for an answer', [user('a'), asked], undefined],
    ['all of a history that is over', [user('a'), calls('x'), answers('x'), says('b')], 4],
    ['all but the last turn, where that is long', [user('a'), says('b'), long('c'), says('d')], 2],
    ['what is older than a part of the history', [long('a'), says('b'), user('c'), says('d'), user('e'), says('f')], 2],
    ['all before the turn that asked', [user('a'), says('b'), long('c'), calls('x'), answers('x'), asked], 2],
  ])('%s', (_, history, cut) => {
    const plan = planCompression(history);
    expect(plan?.older.length).toBe(cut);
    if (plan) expect([...plan.older, ...plan.kept]).toEqual(history);
  });

  const turn = fc.record({
    prompt: fc.string({ maxLength: 400 }),
    rounds: fc.array(fc.record({ ids: fc.integer({ min: 1, max: 3 }), answered: fc.integer({ min: 0, max: 3 }) }), {
      maxLength: 3,
    }),
    overtaken: fc.boolean(),
    reply: fc.boolean(),
  });
  const history = fc
    .record({ turns: fc.array(turn, { minLength: 1, maxLength: 6 }), hanging: fc.boolean() })
    .map(({ turns, hanging }) => {
      const contents: Content[] = [];
      let next = 0;
      for (const { prompt, rounds, overtaken, reply } of turns) {
        contents.push(user(prompt));
        for (const { ids, answered } of rounds) {
          const names = Array.from({ length: ids }, () => `c${next++}`);
          contents.push(calls(...names));
          if (overtaken) contents.push(user('meanwhile'));
          if (answered > 0) contents.push(answers(...names.slice(0, answered)));
        }
        if (reply) contents.push(says('done'));
      }
      return hanging ? [...contents, asked] : contents;
    });

  test('whatever the history holds, every call keeps one response, adjacent, and a hanging question stays last', () => {
    let planned = 0;
    fc.assert(
      fc.property(history, (contents) => {
        const plan = planCompression(contents);
        if (plan === undefined) return;
        planned++;
        const compressed = compressedContents('summary', plan.kept);
        // The record is read back, and what it gives is what the next request is made of.
        const writer = new Writer().system('k', 'chat_compression', { compressedHistory: compressed });
        const folded = foldHistory(JSON.parse(JSON.stringify(writer.records))).contents;
        expect(danglingCalls(folded)).toEqual(danglingCalls(contents));
        expect(findRestorableAskUserQuestion(folded.at(-1))).toEqual(findRestorableAskUserQuestion(contents.at(-1)));
        const open = new Set(danglingCalls(contents).map(({ id }) => id));
        for (const [at, { role, parts }] of folded.entries()) {
          const ids = idsOf(parts, 'functionCall');
          if (role !== 'model' || ids.some((id) => open.has(id))) continue;
          expect(idsOf(folded[at + 1]?.parts, 'functionResponse')).toEqual(ids);
        }
        const sent = pairCalls(folded, 'lost');
        expect(sent.flatMap(({ parts }) => idsOf(parts, 'functionResponse')).toSorted()).toEqual(
          sent.flatMap(({ parts }) => idsOf(parts, 'functionCall')).toSorted(),
        );
        if (plan.kept.length > 0) expect(plan.kept[0]?.parts?.[0]).toHaveProperty('text');
      }),
      { numRuns: 300 },
    );
    expect(planned).toBeGreaterThan(100);
  });
});

const idsOf = (parts: readonly Part[] | undefined, key: 'functionCall' | 'functionResponse') =>
  (parts ?? []).flatMap((part) => part[key]?.id ?? []);

test('[TR-9] a conversation becomes a text that names who said and called what, within its limit', () => {
  const contents = [
    user('hello'),
    calls('x'),
    answers('x'),
    { role: 'model', parts: [{ text: 'hm', thought: true }] },
    says('done'),
  ];
  expect(conversationText(contents, 1_000)).toBe(
    'Person: hello\n\nCall of glob: {}\n\nResult of glob: x\n\nAssistant: done',
  );
  const cut = conversationText([long('a'), ...Array.from({ length: 50 }, () => long('b')), user('end')], 10_000);
  expect(cut.length).toBeLessThan(10_100);
  expect([cut.startsWith('Person: a'), cut.endsWith('Person: end')]).toEqual([true, true]);
  expect(sizeOf([user('é')])).toBe(JSON.stringify(user('é')).length);
});

describe('[ACP-2] a command is a prompt that is its name and text alone', () => {
  test.each([
    ['/help', { name: 'help', argument: '' }],
    ['  /model  gpt-x ', { name: 'model', argument: 'gpt-x' }],
    ['/compress\nnow', { name: 'compress', argument: 'now' }],
    ['/helpme', undefined],
    ['/usr/bin is full', undefined],
    ['say /help', undefined],
    ['/', undefined],
    ['', undefined],
  ])('%j', (text, expected) => {
    const command = parseCommand(text);
    expect(command && { name: command.name, argument: command.argument }).toEqual(expected);
    expect(commandOf([{ text }])).toEqual(command);
  });

  test('with a picture it is for the model', () => {
    expect(commandOf([{ text: '/help' }, { inlineData: { data: '', mimeType: 'image/png' } } as Part])).toBeUndefined();
  });
});

test('[MD-4] a context is full above seven tenths of a window that is known', () => {
  expect([isFull(701, 1_000), isFull(700, 1_000), isFull(undefined, 1_000), isFull(9_999, undefined)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(contextEvent({ promptTokenCount: 5, totalTokenCount: 9 }, 10)).toEqual({ kind: 'context', used: 5, size: 10 });
  expect(contextEvent({ totalTokenCount: 9 }, 10)).toEqual({ kind: 'context', used: 9, size: 10 });
  expect([contextEvent(undefined, 10), contextEvent({ promptTokenCount: 5 }, undefined), contextEvent({}, 10)]).toEqual(
    Array(3).fill(undefined),
  );
});
