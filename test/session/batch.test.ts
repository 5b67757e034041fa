import { describe, expect, test } from 'vitest';
import { type BatchEnd, fateOfUnattended, runBatch, type StopKind } from '../../src/session/batch.ts';
import { done, failure } from '../../src/session/call-result.ts';
import type { DanglingCall } from '../../src/session/dangling.ts';
import type { QuestionReply, UnattendedReason } from '../../src/session/ports.ts';

const option = (label: string) => ({ label, description: `about ${label}` });
const questions = [{ question: 'Which?', header: 'Choice', options: [option('A'), option('B')] }];
const auq = (id: string, args: object = { questions }): DanglingCall => ({
  id,
  name: 'ask_user_question',
  args: args as Record<string, unknown>,
});
const other = (id: string): DanglingCall => ({ id, name: 'make_coffee', args: {} });

const answered: QuestionReply = { kind: 'submitted', answers: [{ 0: 'A' }] };
const nothing: QuestionReply = { kind: 'submitted', answers: [] };
const declined: QuestionReply = { kind: 'declined' };
const failed: QuestionReply = { kind: 'failed', message: 'boom' };
const timeout: QuestionReply = { kind: 'unattended', reason: 'timeout' };

interface Run {
  readonly end: BatchEnd;
  readonly asked: string[];
  readonly shown: string[];
}

async function run(
  calls: DanglingCall[],
  replies: QuestionReply[],
  signal = new AbortController().signal,
): Promise<Run> {
  const asked: string[] = [];
  const shown: string[] = [];
  const end = await runBatch(calls, {
    async ask({ id }) {
      asked.push(id);
      return replies.shift() as QuestionReply;
    },
    async run(call) {
      return done(failure(call, 'There is no such tool.', 'tool_not_registered'), false);
    },
    async save() {},
    async finished({ call }) {
      shown.push(call.id);
    },
    now: () => 0,
    signal,
  });
  return { end, asked, shown };
}

const summary = (end: BatchEnd) =>
  end.kind === 'settled'
    ? [end.next, ...end.results.map(({ status, errorType }) => errorType ?? status)]
    : [end.reason, ...end.results.map(({ status }) => status), ...end.left.map(({ id }) => `open ${id}`)];

describe('[RS-5, RS-7, RS-10] how a batch ends', () => {
  test.each<[string, DanglingCall[], QuestionReply[], string[], string[]]>([
    ['answered', [auq('a')], [answered], ['a'], ['model', 'success']],
    ['declined', [auq('a')], [declined], ['a'], ['stop', 'cancelled']],
    ['failed', [auq('a')], [failed], ['a'], ['stop', 'unhandled_exception']],
    ['submitted without an answer', [auq('a')], [nothing], ['a'], ['model', 'no_answer']],
    ['unattended', [auq('a')], [timeout], ['a'], ['timeout', 'open a']],
    ['answered, answered', [auq('a'), auq('b')], [answered, answered], ['a', 'b'], ['model', 'success', 'success']],
    ['answered, declined', [auq('a'), auq('b')], [answered, declined], ['a', 'b'], ['stop', 'success', 'cancelled']],
    ['declined first', [auq('a'), auq('b')], [declined], ['a'], ['stop', 'cancelled', 'execution_denied']],
    ['failed first', [auq('a'), auq('b')], [failed], ['a'], ['stop', 'unhandled_exception', 'execution_denied']],
    [
      'answered, error',
      [auq('a'), auq('b')],
      [answered, failed],
      ['a', 'b'],
      ['stop', 'success', 'unhandled_exception'],
    ],
    ['answered, unattended', [auq('a'), auq('b')], [answered, timeout], ['a', 'b'], ['timeout', 'success', 'open b']],
    ['unattended first', [auq('a'), auq('b')], [timeout], ['a'], ['timeout', 'open a', 'open b']],
    [
      'a tool that is not there',
      [other('x'), auq('a')],
      [answered],
      ['a'],
      ['model', 'tool_not_registered', 'success'],
    ],
    ['arguments that do not parse', [auq('a', {})], [], [], ['model', 'invalid_tool_params']],
  ])('%s', async (_, calls, replies, asked, expected) => {
    const result = await run(calls, replies);
    expect(result.asked).toEqual(asked);
    expect(summary(result.end)).toEqual(expected);
  });

  test('results are shown as they come, the last one only by who persists it', async () => {
    const { shown } = await run([auq('a'), auq('b')], [answered, answered]);
    expect(shown).toEqual(['a']);
  });

  test('[RS-6] nothing is asked once the turn was stopped', async () => {
    const { end, asked } = await run([auq('a')], [answered], AbortSignal.abort());
    expect(asked).toEqual([]);
    expect(summary(end)).toEqual(['abort', 'open a']);
  });
});

describe('[RS-6, BT-1] what an unattended batch leaves on disk', () => {
  const stops: (StopKind | undefined)[] = [undefined, 'cancel', 'superseded', 'close', 'shutdown', 'hangup'];
  const table = (restored: boolean, switchedOn: boolean) =>
    stops.map((stop) => {
      const reason: UnattendedReason = stop === undefined ? 'timeout' : 'abort';
      return `${stop ?? reason}: ${fateOfUnattended({ restored, switchedOn, reason, stop })}`;
    });

  test('asked again: nothing, whoever stopped it', () => {
    for (const line of table(true, true)) expect(line).toMatch(/: leave_open$/);
  });

  test('asked first with the switch on: only what a person did', () => {
    expect(table(false, true)).toEqual([
      'timeout: leave_open',
      'cancel: persist_cancelled',
      'superseded: persist_cancelled',
      'close: leave_open',
      'shutdown: leave_open',
      'hangup: leave_open',
    ]);
  });

  test('asked first with the switch off: as the reference', () => {
    expect(table(false, false)).toEqual([
      'timeout: persist_declined',
      'cancel: persist_cancelled',
      'superseded: persist_cancelled',
      'close: persist_cancelled',
      'shutdown: persist_cancelled',
      'hangup: leave_open',
    ]);
  });
});
