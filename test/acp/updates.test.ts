import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { bulkUpdate, type ReadEvent, sessionUpdate } from '../../src/acp/updates.ts';
import { FrameBatch, MAX_LINE, UpdateFrames } from '../../src/acp/frames.ts';
import type { SessionEvent } from '../../src/session/ports.ts';

const CWD = '/srv/project';
const FRAMES = join(import.meta.dirname, '../fixtures/wire/frames');

/** Every update of a recording, as it was written. */
function recorded(name: string): string[] {
  const frames = readFileSync(join(FRAMES, name), 'utf8').trim().split('\n');
  return frames.flatMap((line) => {
    const update = JSON.parse(line).frame?.params?.update;
    return update ? [JSON.stringify(update)] : [];
  });
}

function check(event: ReadEvent, update: string): void {
  expect(JSON.stringify(sessionUpdate(event, CWD))).toBe(update);
}

const ANSWER = 'User has provided the following answers:\n\n**Colour**: Blue';
const DISPLAY = {
  type: 'ask_user_question_answers',
  text: ANSWER,
  answers: [{ question: 'Which colour?', answer: 'Blue' }],
};
const TOKENS = {
  promptTokenCount: 11,
  candidatesTokenCount: 7,
  totalTokenCount: 18,
  thoughtsTokenCount: 0,
  cachedContentTokenCount: 0,
};

describe('[ACP-3, RS-3] a live event is shown as it was recorded', () => {
  const name = 'ask_user_question';
  test.each<[string, ReadEvent]>([
    [
      'a1-single.jsonl',
      { kind: 'call', phase: 'preparing', callId: 'call_mx39nqfn_1_0', name, args: { half: 'written' } },
    ],
    ['a1-single.jsonl', { kind: 'usage', usage: TOKENS, durationMs: 487 }],
    [
      'a1-single.jsonl',
      { kind: 'result', callId: 'call_mx39nqfn_1_0', name, ok: true, text: ANSWER, display: DISPLAY },
    ],
    ['a1-single.jsonl', { kind: 'text', text: '**Colour**: Blue', thought: false }],
    ['a1-single.jsonl', { kind: 'usage', usage: TOKENS, durationMs: 37 }],
    [
      'k1-gemini.jsonl',
      {
        kind: 'usage',
        usage: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
        durationMs: 51,
      },
    ],
  ])('%s: %j', (recording, event) => {
    expect(recorded(recording)).toContain(JSON.stringify(sessionUpdate(event, CWD)));
  });

  test('a12-session-cancel.jsonl: a failed result has no rawOutput', () => {
    const failed = recorded('a12-session-cancel.jsonl').find((update) => update.includes('"failed"'))!;
    const { toolCallId, content } = JSON.parse(failed);
    check({ kind: 'result', callId: toolCallId, name, ok: false, text: content[0].content.text }, failed);
  });
});

const SOURCE = { recordId: 'r', timestamp: 5 };
const META = '"timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"]}';

describe('[ACP-3, ACP-10, ACP-11] a replayed event names its record and time', () => {
  test.each<[string, ReadEvent, string]>([
    [
      "the daemon's prompt id comes first",
      { kind: 'user_part', part: { text: 'hi' }, source: { ...SOURCE, segment: 0, promptId: 'p' } },
      '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"},"_meta":{"promptId":"p","timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"],"segmentId":"r:0"}}}',
    ],
    [
      'a picture',
      {
        kind: 'user_part',
        part: { inlineData: { mimeType: 'image/png', data: 'AA==' } },
        source: { ...SOURCE, segment: 2 },
      },
      '{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"AA==","mimeType":"image/png"},"_meta":{"timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"],"segmentId":"r:2"}}}',
    ],
    [
      'a sound',
      { kind: 'user_part', part: { inlineData: { mimeType: 'audio/wav', data: 'AA==' } } },
      '{"sessionUpdate":"user_message_chunk","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}}',
    ],
    [
      'another attachment',
      { kind: 'user_part', part: { inlineData: { mimeType: 'application/pdf', data: 'AA==' } } },
      '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"[application/pdf]"}}',
    ],
    [
      'a thought',
      { kind: 'text', text: 'hm', thought: true, source: { ...SOURCE, segment: 1 } },
      '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"},"_meta":{"timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"],"segmentId":"r:1"}}}',
    ],
    [
      'a failed call of an MCP tool',
      { kind: 'result', callId: 'c', name: 'mcp__srv__tool', ok: false, text: 'no', source: SOURCE },
      `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no"}}],"_meta":{"toolName":"mcp__srv__tool","provenance":"mcp","serverId":"srv",${META}}}`,
    ],
    [
      'an edit is a diff',
      {
        kind: 'result',
        callId: 'c',
        name: 'edit',
        ok: true,
        text: 'ok',
        display: { fileName: 'b', originalContent: null, newContent: 'n' },
      },
      '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"diff","path":"b","oldText":null,"newText":"n"}],"_meta":{"toolName":"edit","provenance":"builtin"},"rawOutput":{"fileName":"b","originalContent":null,"newContent":"n"}}',
    ],
    [
      'an edit says where its file is',
      {
        kind: 'result',
        callId: 'c',
        name: 'edit',
        ok: true,
        text: 'ok',
        display: { fileName: 'b', filePath: '/a/b', originalContent: 'o', newContent: 'n' },
      },
      '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"diff","path":"/a/b","oldText":"o","newText":"n"}],"_meta":{"toolName":"edit","provenance":"builtin"},"rawOutput":{"fileName":"b","filePath":"/a/b","originalContent":"o","newContent":"n"}}',
    ],
    [
      'what a command printed',
      {
        kind: 'text',
        text: 'a\nb',
        thought: false,
        command: { contextCompression: { phase: 'done' } },
        source: { ...SOURCE, segment: 0 },
      },
      '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a  \\nb"},"_meta":{"source":"slash_command","contextCompression":{"phase":"done"},"timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"],"segmentId":"r:0"}}}',
    ],
  ])('%s', (_, event, update) => check(event, update));

  test('[TL-1] todo_write is the plan: its call has no card, its result is the list', () => {
    const call: ReadEvent = { kind: 'call', phase: 'recorded', callId: 'c', name: 'todo_write', args: {} };
    expect(sessionUpdate(call, CWD)).toBeUndefined();
    const display = {
      type: 'todo_list',
      planId: 'p',
      todos: [
        { id: '1', content: 'do', status: 'in_progress' },
        { content: 'x', status: 'odd' },
      ],
    };
    check(
      { kind: 'result', callId: 'c', name: 'todo_write', ok: true, text: 'ok', display, source: SOURCE },
      '{"sessionUpdate":"plan","entries":[{"content":"do","priority":"medium","status":"in_progress","_meta":{"qwenTodo":{"id":"1"}}},{"content":"x","priority":"medium","status":"pending"}],"_meta":{"qwenTodoPlan":{"id":"p"},"timestamp":5,"qwenTranscript":{"sourceRecordIds":["r"],"planToolCallId":"c"}}}',
    );
    const failed: ReadEvent = { kind: 'result', callId: 'c', name: 'todo_write', ok: false, text: 'no' };
    expect(sessionUpdate(failed, CWD)).toBeUndefined();
  });

  test('in a response it has its record and time once more', () => {
    const update = sessionUpdate({ kind: 'usage', usage: { totalTokenCount: 1 }, source: SOURCE }, CWD)!;
    expect(JSON.stringify(bulkUpdate(update, SOURCE))).toBe(
      `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"totalTokens":1},${META},"qwen.session.recordId":"r"},"timestamp":5}`,
    );
  });
});

describe('[ACP-3] the title of a call says what it is about', () => {
  const questions = [{}, {}];
  test.each([
    ['ask_user_question', { questions }, 'AskUserQuestion: Ask user 2 questions', 'think'],
    ['ask_user_question', { questions: 'none' }, 'AskUserQuestion', 'think'],
    ['read_file', { file_path: '/srv/project/src/a.ts' }, 'ReadFile: src/a.ts', 'read'],
    ['read_file', { file_path: '/srv/projects/a.ts' }, 'ReadFile: /srv/projects/a.ts', 'read'],
    ['read_file', { file_path: '/x', limit: 10 }, 'ReadFile: /x (lines 1-10)', 'read'],
    ['read_file', {}, 'ReadFile', 'read'],
    ['grep_search', { pattern: 'x', path: '/srv/project/src' }, "Grep: 'x' in src", 'search'],
    ['grep_search', { pattern: 'x', path: 'src', glob: '*.ts' }, "Grep: 'x' in src (filter: '*.ts')", 'search'],
    ['glob', { pattern: '*', path: '/srv/project' }, "Glob: '*'", 'search'],
    ['run_shell_command', { command: 'ls' }, 'Shell: ls', 'execute'],
    ['write_file', { file_path: 7 }, 'WriteFile', 'edit'],
    ['toString', {}, 'toString', 'other'],
  ])('%s %j', (name, args, title, kind) => {
    expect(sessionUpdate({ kind: 'call', phase: 'recorded', callId: 'c', name, args }, CWD)).toMatchObject({
      title,
      kind,
    });
  });
});

describe('[ACP-5] no line is over 32 MiB', () => {
  const long = '\u0001'.repeat(6 << 20);
  test.each<[string, SessionEvent, RegExp]>([
    ['text', { kind: 'text', text: long, thought: false }, /cut/],
    ['a text of the person', { kind: 'user_part', part: { text: long } }, /cut/],
    ['a picture', { kind: 'user_part', part: { inlineData: { mimeType: 'image/png', data: long } } }, /cut/],
    ['arguments', { kind: 'call', phase: 'recorded', callId: 'c', name: 'x', args: { long } }, /cut/],
    ['a display', { kind: 'result', callId: 'c', name: 'x', ok: true, text: 'short', display: long }, /"text":"short"/],
    ['a result', { kind: 'result', callId: 'c', name: 'x', ok: true, text: long }, /cut/],
    ['a pair cut in the middle', { kind: 'text', text: `x${'🙂'.repeat(MAX_LINE / 4)}`, thought: false }, /🙂\\n\[cut/],
  ])('%s is cut with a note', (_, event, note) => {
    const frames = new UpdateFrames('s', CWD);
    const batch = new FrameBatch();
    frames.append(event, batch);
    const line = batch.take();
    expect(line.length).toBeLessThanOrEqual(MAX_LINE);
    expect(line.at(-1)).toBe(10);
    expect(JSON.parse(line.toString())).toMatchObject({ method: 'session/update', params: { sessionId: 's' } });
    expect(line.subarray(-500).toString()).toMatch(note);
    expect(Buffer.byteLength(frames.message(event)!)).toBeLessThanOrEqual(MAX_LINE);
  });
});

test('[ACP-5] many small lines are one write, and a batch that was taken is not written to again', () => {
  const frames = new UpdateFrames('s', CWD);
  const batch = new FrameBatch();
  const texts = Array.from({ length: 5_000 }, (_, i) => `${i} é🙂 ${'x'.repeat(i % 300)}`);
  const taken: Buffer[] = [];
  for (const [i, text] of texts.entries()) {
    frames.append({ kind: 'text', text, thought: false }, batch);
    if (i % 1_999 === 0) taken.push(batch.take());
  }
  taken.push(batch.take());
  const lines = Buffer.concat(taken).toString().trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line).params.update.content.text)).toEqual(texts);
});
