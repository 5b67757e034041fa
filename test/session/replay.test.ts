import { describe, expect, test } from 'vitest';
import { collectBulk, loadReplay, MAX_BULK, MAX_UPDATES } from '../../src/acp/bulk.ts';
import { readConversation } from '../../src/session/conversation.ts';
import { longestPage } from '../../src/session/page.ts';
import type { SessionEvent } from '../../src/session/ports.ts';
import { type LeftOpen, Replay } from '../../src/session/replay.ts';
import { NOTHING, replay, transcriptOf, Writer } from '../support/transcripts.ts';

const CANCELLED_TURN = { state: 'cancelled', promptId: 'p', startedAt: 2, cancelledAt: 5, endedAt: 6 };

/** Each event in a word or two. */
function shown(writer: Writer, left: Partial<LeftOpen> = {}): string[] {
  const play = new Replay({ ...NOTHING, ...left });
  const events = writer.records.flatMap((record) => play.next({ kind: 'record', record, gap: false }));
  return [...events, ...play.finish()].map((event) => {
    switch (event.kind) {
      case 'call':
        return `call ${event.callId}`;
      case 'result':
        return `${event.ok ? 'done' : 'failed'} ${event.callId} of ${event.source!.recordId}`;
      case 'text':
        return event.text;
      case 'user_part':
        return `user ${event.part.text}`;
      default:
        return event.kind;
    }
  });
}

describe('[LS-1, LS-2, LS-4] a call without a result is left in progress exactly if it is open or waited for', () => {
  const two = () => new Writer().calls('a', ['x', 'y']);
  test.each<[string, Writer, Partial<LeftOpen>, string[]]>([
    ['nothing is open', two(), {}, ['call x', 'call y', 'failed x of a', 'failed y of a']],
    ['both are open', two(), { open: new Set(['x', 'y']) }, ['call x', 'call y']],
    ['one is open, one is waited for', two(), { open: new Set(['x']), waiting: new Set(['y']) }, ['call x', 'call y']],
    ['one is waited for', two(), { waiting: new Set(['y']) }, ['call x', 'call y', 'failed x of a']],
    ['one has its result', two().result('r', 'x', '1'), {}, ['call x', 'call y', 'done x of r', 'failed y of a']],
    ['the person went on', two().user('u', 'next'), { open: new Set(['x', 'y']) }, ['call x', 'call y', 'user next']],
  ])('%s', (_, writer, left, expected) => expect(shown(writer, left)).toEqual(expected));

  test('a call is closed once under an id that was used twice, and not when its second use is open', () => {
    const writer = new Writer().calls('a', ['x']).user('u', 'next').calls('b', ['x']);
    expect(shown(writer)).toEqual(['call x', 'user next', 'call x', 'failed x of b']);
    expect(shown(writer, { open: new Set(['x']) })).toEqual(['call x', 'user next', 'call x']);
  });

  test('a call without an id has the same one in every replay, and takes a result without an id', () => {
    const writer = new Writer().calls('a', ['', 'x']);
    const [call] = shown(writer);
    expect(shown(writer)).toEqual([call, 'call x', `${call!.replace('call', 'failed')} of a`, 'failed x of a']);
    const answered = writer.result('r', '', '1', { toolCallResult: undefined as never });
    expect(shown(answered)).toEqual([call, 'call x', `${call!.replace('call', 'done')} of r`, 'failed x of a']);
  });
});

describe('[TR-2, TR-4] whatever a file holds, a call and its result are under ids and names that a client takes', () => {
  const at = (recordId: string) => ({ recordId, timestamp: expect.any(Number) });
  const calls = (...parts: readonly unknown[]) =>
    new Writer().add('a', 'assistant', {
      message: { role: 'model', parts: parts.map((functionCall) => ({ functionCall })) as never },
    });
  const answer = (writer: Writer, functionResponse: unknown, toolCallResult?: unknown) =>
    writer.add('r', 'tool_result', {
      message: { role: 'user', parts: [{ functionResponse }] as never },
      ...(toolCallResult !== undefined && { toolCallResult: toolCallResult as never }),
    });
  const last = (writer: Writer): SessionEvent => {
    const play = new Replay({ open: new Set(), waiting: new Set() });
    return writer.records.flatMap((record) => play.next({ kind: 'record', record, gap: false })).at(-1)!;
  };
  const result = { kind: 'result', callId: 'x', name: 'glob', ok: true, text: 'out', source: at('r') };
  const response = { output: 'out' };
  const glob = { id: 'x', name: 'glob' };

  test.each<[string, Writer, object]>([
    ['its name and arguments are none', calls({ id: 'x', name: 5, args: 'all' }), { callId: 'x', name: '', args: {} }],
    ['its name is missing', calls({ id: 'x' }), { callId: 'x', name: '', args: {} }],
    ['its id is a number', calls({ ...glob, id: 5 }), { callId: 'qwen-replay-tool:a:0', name: 'glob', args: {} }],
  ])('a call: %s', (_, writer, expected) => {
    expect(last(writer)).toEqual({ kind: 'call', phase: 'recorded', ...expected, source: at('a') });
  });

  test.each<[string, Writer, object]>([
    ['in the plain form', answer(calls(glob), { ...glob, response }), {}],
    ['an error alone', answer(calls(glob), { ...glob, response: { error: 'no' } }), { ok: false, text: 'no' }],
    ['neither output nor error', answer(calls(glob), { ...glob, response: { a: 1 } }), { text: '{"a":1}' }],
    ['nothing', answer(calls(glob), glob), { text: '' }],
    ['a text in place of an object', answer(calls(glob), { ...glob, response: 'out' }), { text: '' }],
    ['the name is missing', answer(calls(glob), { id: 'x', response }), {}],
    ['the name is missing, and the call', answer(new Writer(), { id: 'x', response }), { name: '' }],
    ['the record calls it a success', answer(calls(glob), { ...glob, response }, { status: 'success' }), {}],
    ['the record says otherwise', answer(calls(glob), { ...glob, response }, { status: 'cancelled' }), { ok: false }],
    [
      'the record has a display',
      answer(calls(glob), { ...glob, response }, { status: 'success', resultDisplay: null }),
      { display: null },
    ],
    [
      'no id, but the record has one',
      answer(calls(glob), { name: 'glob', response }, { status: 'success', callId: 'x' }),
      {},
    ],
    ['no id anywhere', answer(calls(glob), { name: 'glob', response }), { callId: '' }],
    [
      'no id, and the second of two calls without one has its name',
      answer(calls({ name: 'edit' }, { name: 'glob' }), { name: 'glob', response }),
      { callId: 'qwen-replay-tool:a:1' },
    ],
    [
      'no id, and no call without one has its name',
      answer(calls({ name: 'edit' }), { name: 'glob', response }),
      { callId: '' },
    ],
  ])('a result: %s', (_, writer, expected) => {
    expect(last(writer)).toStrictEqual({ ...result, ...expected });
  });

  test('a result beside a lost parent says so, once', () => {
    const json = (text: string) => Buffer.from(JSON.stringify(text));
    const raw: SessionEvent & { kind: 'raw_result' } = {
      kind: 'raw_result',
      callIdJson: json('x'),
      nameJson: json('glob'),
      textJson: json('out'),
      ok: true,
      source: { recordId: 'r', timestamp: 7 },
    };
    const play = new Replay({ open: new Set(), waiting: new Set() });
    for (const record of calls(glob).records) play.next({ kind: 'record', record, gap: false });
    const text = expect.stringContaining('missing');
    const source = { recordId: 'r', timestamp: 7, segment: 0 };
    expect(play.next({ kind: 'raw_result', result: raw, gap: true })).toEqual([
      { kind: 'text', text, thought: false, source },
      raw,
    ]);
    expect(play.next({ kind: 'raw_result', result: raw, gap: false })).toEqual([raw]);
    expect(play.finish()).toEqual([]);
  });

  test.each<[string, Writer]>([
    ['a user record', new Writer().add('u', 'user')],
    ['a message from the middle of a turn', new Writer().add('u', 'user', { subtype: 'mid_turn_user_message' })],
    ['a result', new Writer().add('u', 'tool_result')],
    ['an answer', new Writer().add('u', 'assistant')],
    ['an answer without parts', new Writer().add('u', 'assistant', { message: { role: 'model' } })],
  ])('without a message nothing is shown of %s', (_, writer) => expect(shown(writer)).toEqual([]));
});

describe('[ACP-3] usage stands behind the text and before the calls', () => {
  const usageMetadata = { promptTokenCount: 1 };
  const parts = [{ text: 'a' }, { functionCall: { id: 'x', name: 'glob' } }, { text: 'b' }];
  test.each([
    ['text only', [{ text: 'a' }], ['a', 'usage']],
    ['a call between texts', parts, ['a', 'usage', 'call x', 'b', 'failed x of a']],
    ['nothing', [], ['usage']],
    ['empty text', [{ text: '' }], ['usage']],
  ])('%s', (_, list, expected) => {
    const writer = new Writer().add('a', 'assistant', { message: { role: 'model', parts: list }, usageMetadata });
    expect(shown(writer)).toEqual(expected);
  });
});

describe('[TR-1] what nobody typed is shown as what it is', () => {
  const injected = (subtype: string, systemPayload?: unknown) =>
    new Writer().user('u', 'raw', { subtype, ...(systemPayload ? { systemPayload } : {}) });
  test.each<[string, Writer, string[]]>([
    ['a notification', injected('notification', { displayText: 'shown' }), ['user shown']],
    ['a notification without a text', injected('notification'), []],
    ['a scheduled prompt', injected('cron', { displayText: 'shown' }), ['user shown']],
    ['a scheduled prompt without a text', injected('cron', { displayText: 5 }), []],
    ['a message in the middle of a turn', injected('mid_turn_user_message'), ['user raw']],
    [
      'a message in the middle of a turn that has a text',
      injected('mid_turn_user_message', { displayText: 'shown' }),
      ['user shown'],
    ],
    ['a goal', injected('goal_runtime'), []],
    ['a subtype of the future', injected('of_the_future'), ['user raw']],
    ['a result with a subtype', new Writer().result('r', 'x', '1', { subtype: 'goal_runtime' }), ['done x of r']],
    [
      'a type of the future',
      new Writer().add('r', 'new' as 'user', { message: new Writer().result('r', 'x', '1').records[0]!.message! }),
      [],
    ],
    [
      'a command',
      new Writer().system('s', 'slash_command', {
        phase: 'result',
        outputHistoryItems: [{ type: 'info', text: 'out' }],
      }),
      ['out'],
    ],
    ['a turn that a person ended', new Writer().system('s', 'turn_result', CANCELLED_TURN), ['cancelled']],
    [
      'a turn that a person ended whose question is asked again',
      new Writer().system('s', 'turn_result', { ...CANCELLED_TURN, leftOpen: true }),
      [],
    ],
    ['a turn that ended by itself', new Writer().system('s', 'turn_result', { state: 'completed', promptId: 'p' }), []],
    [
      'a cancelled turn of no time',
      new Writer().system('s', 'turn_result', { ...CANCELLED_TURN, cancelledAt: '5' }),
      [],
    ],
    [
      'a command that is invoked',
      new Writer().system('s', 'slash_command', { phase: 'invocation', outputHistoryItems: [{ text: 'no' }] }),
      [],
    ],
    ['a command that says nothing', new Writer().system('s', 'slash_command', { phase: 'result' }), []],
    ['a command without a payload', new Writer().system('s', 'slash_command', null), []],
    [
      'a command whose output is no text',
      new Writer().system('s', 'slash_command', {
        phase: 'result',
        outputHistoryItems: [null, 'no', {}, { text: 5 }, { text: 'out' }],
      }),
      ['out'],
    ],
    [
      'a system record of the future with an output and an end',
      new Writer().system('s', 'new', { phase: 'result', outputHistoryItems: [{ text: 'no' }], ...CANCELLED_TURN }),
      [],
    ],
    [
      'a compression, a rewind, the end of a turn',
      new Writer().system('s', 'chat_compression').system('t', 'rewind').system('v', 'turn_result'),
      [],
    ],
  ])('%s', (_, writer, expected) => expect(shown(writer)).toEqual(expected));
});

describe('[ACP-11, ACP-10] a response carries the newest whole records that fit', () => {
  async function* from(events: readonly SessionEvent[]): AsyncGenerator<SessionEvent> {
    yield* events;
  }
  const text = (record: number, value: string): SessionEvent => ({
    kind: 'text',
    text: value,
    thought: false,
    source: { recordId: `r${record}`, timestamp: 0, segment: 0 },
  });

  test('by number: a record of two updates goes whole', async () => {
    const events = Array.from({ length: MAX_UPDATES + 1 }, (_, i) => text(Math.floor(i / 2), `${i}`));
    const bulk = await collectBulk(from(events), '');
    expect(bulk.updates).toHaveLength(MAX_UPDATES - 1);
    expect(loadReplay(bulk, 'r0', false)).toMatchObject({ v: 1, anchorRecordId: 'r1', hasMore: true });
  });

  test('by bytes', async () => {
    const third = 'x'.repeat(MAX_BULK / 3);
    const bulk = await collectBulk(from([1, 2, 3, 4].map((record) => text(record, third))), '');
    expect(bulk.updates).toHaveLength(2);
    expect(bulk.cutTo).toBe('r3');
    expect(JSON.stringify(bulk.updates).length).toBeLessThan(MAX_BULK);
  });

  test('a call that was cut off is not closed', async () => {
    const source = { recordId: 'r0', timestamp: 0 };
    const call: SessionEvent = { kind: 'call', phase: 'recorded', callId: 'c', name: 'glob', args: {}, source };
    const lost: SessionEvent = { kind: 'result', callId: 'c', name: 'glob', ok: false, text: 'lost', source };
    const many = Array.from({ length: MAX_UPDATES }, (_, i) => text(i + 1, ''));
    const bulk = await collectBulk(from([call, ...many, lost]), '');
    expect(bulk.updates).toHaveLength(MAX_UPDATES);
    expect(bulk.updates.at(-1)).toMatchObject({ sessionUpdate: 'agent_message_chunk' });
  });

  test('what fits is not said to be cut', async () => {
    const bulk = await collectBulk(from([text(1, 'a')]), '');
    expect(loadReplay(bulk, 'r1', false)).toEqual({ v: 1, updates: bulk.updates });
    expect(loadReplay(bulk, 'r1', true)).toMatchObject({ anchorRecordId: 'r1', hasMore: true });
  });

  test('no more of a long conversation is read than can be shown', async () => {
    const writer = new Writer();
    for (let i = 0; i < 50; i++) writer.user(`u${i}`, 'x').system(`s${i}`, 'ui_telemetry');
    const conversation = await readConversation(await transcriptOf(writer.text()));
    expect(longestPage(conversation, 10, 1 << 20)).toEqual({ range: { from: 79 }, hasMore: true });
    expect(longestPage(conversation, 100, 1 << 20)).toEqual({ range: { from: 0 }, hasMore: false });
    expect(longestPage(conversation, 100, 1).range.from).toBe(99);
    const { updates } = await collectBulk(
      replay(conversation, NOTHING, longestPage(conversation, 10, 1 << 20).range),
      '',
    );
    expect(updates).toHaveLength(10);
  });
});
