import { readdirSync, readFileSync } from 'node:fs';
import type { Content } from '@google/genai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AuthType, UsageMetadata } from '../../src/session/ports.ts';
import * as records from '../../src/session/records.ts';
import type { ToolCallResult, TranscriptRecord } from '../../src/session/transcript.ts';
import { type TurnResult, turnResultRecord } from '../../src/session/turn-result.ts';

const TRANSCRIPTS = new URL('../fixtures/wire/transcripts/', import.meta.url);

type Fields = Readonly<Record<string, unknown>>;

/** A context that hands out the recorded id and the recorded times, in the order in which they are asked for. */
function replaying(record: TranscriptRecord, times: readonly string[]): records.RecordContext {
  const left = [...times];
  return {
    sessionId: record.sessionId,
    cwd: record.cwd!,
    version: record.version!,
    gitBranch: record.gitBranch,
    newId: () => record.uuid,
    now: () => new Date(left.shift()!),
  };
}

function rebuild(record: TranscriptRecord): records.RecordDraft {
  const context = replaying(record, [record.timestamp]);
  if (record.type === 'user') return records.userRecord(context, record.message!, record.daemonPromptId);
  if (record.type === 'tool_result') return records.toolResultRecord(context, record.message!, record.toolCallResult);
  if (record.type === 'assistant')
    return records.assistantRecord(context, {
      model: record.model!,
      message: record.message!,
      usage: record.usageMetadata,
      contextWindow: record.contextWindowSize,
    });
  return rebuildSystem(record);
}

function rebuildSystem(record: TranscriptRecord): records.RecordDraft {
  const payload = record.systemPayload as Fields;
  if (record.subtype === 'branch_checkpoint') {
    const { startExclusiveRecordUuid, assistantRecordUuid } = payload as { [key: string]: string };
    return records.branchCheckpointRecord(
      replaying(record, [record.timestamp]),
      startExclusiveRecordUuid ?? null,
      assistantRecordUuid!,
    );
  }
  if (record.subtype === 'file_history_snapshot') {
    const [snapshot] = payload['snapshots'] as { promptId: string; timestamp: string }[];
    const context = replaying(record, [snapshot!.timestamp, record.timestamp]);
    return records.fileHistorySnapshotRecord(context, snapshot!.promptId);
  }
  return rebuildTelemetry(record, payload['uiEvent'] as Fields);
}

function rebuildTelemetry(record: TranscriptRecord, event: Fields): records.RecordDraft {
  const context = replaying(record, [event['event.timestamp'] as string, record.timestamp]);
  if (event['event.name'] === 'qwen-code.api_response') {
    const usage: UsageMetadata = {
      promptTokenCount: event['input_token_count'] as number,
      candidatesTokenCount: event['output_token_count'] as number,
      cachedContentTokenCount: event['cached_content_token_count'] as number,
      thoughtsTokenCount: event['thoughts_token_count'] as number,
      totalTokenCount: event['total_token_count'] as number,
    };
    return records.apiResponseRecord(context, {
      responseId: event['response_id'] as string,
      model: event['model'] as string,
      durationMs: event['duration_ms'] as number,
      ttftMs: event['ttft_ms'] as number,
      usage,
      promptId: event['prompt_id'] as string,
      authType: event['auth_type'] as AuthType,
    });
  }
  return records.toolCallRecord(context, {
    callId: event['call_id'] as string,
    name: event['function_name'] as string,
    args: event['function_args'] as Fields,
    durationMs: event['duration_ms'] as number,
    status: event['status'] as ToolCallResult['status'],
    executionStatus: event['execution_status'] as NonNullable<ToolCallResult['executionStatus']>,
    promptId: event['prompt_id'] as string,
    toolType: 'native',
  });
}

/** The recorded line, but for the copy of the answer's text in the telemetry, which is not written. */
function withoutResponseText(line: string): string {
  const record = JSON.parse(line) as { systemPayload?: { uiEvent?: { response_text?: string } } };
  delete record.systemPayload?.uiEvent?.response_text;
  return JSON.stringify(record);
}

const CONTEXT: records.RecordContext = {
  sessionId: '0b251374-7eef-4fda-9a33-b6ea5dceeed4',
  cwd: '/srv/project',
  version: '1.2.3',
  newId: () => 'b2d4cde8-dbde-48f9-af3d-38824e4e2509',
  now: () => new Date('2026-11-30T12:00:00.000Z'),
};

/** Recorded to be read: they hold records that this program never writes. */
const READ_ONLY = ['r1-parts.dangling.jsonl', 'r2-pages.dangling.jsonl'];

describe('recorded transcripts', () => {
  test.each(readdirSync(TRANSCRIPTS).filter((name) => name.endsWith('.jsonl') && !READ_ONLY.includes(name)))(
    '[TR-1, TR-10] %s is rebuilt byte for byte, keys in order',
    (name) => {
      const lines = readFileSync(new URL(name, TRANSCRIPTS), 'utf8').split('\n').filter(Boolean);
      const drafts = lines.map((line) => rebuild(JSON.parse(line) as TranscriptRecord));
      const rebuilt = records.linkRecords(drafts, null).map((record) => JSON.stringify(record));
      expect(rebuilt).toEqual(lines.map(withoutResponseText));
    },
  );
});

describe('builders', () => {
  const message: Content = { role: 'user', parts: [{ text: 'hello' }] };

  test('[TR-1] the branch stands behind the version and the daemon id of a prompt before its message', () => {
    const draft = records.userRecord({ ...CONTEXT, gitBranch: 'main' }, message, 'prompt-1');
    const [record] = records.linkRecords([draft], 'parent');
    expect(Object.keys(record!)).toEqual([
      'uuid',
      'parentUuid',
      'sessionId',
      'timestamp',
      'type',
      'provenance',
      'cwd',
      'version',
      'gitBranch',
      'daemonPromptId',
      'message',
    ]);
  });

  test('[BT-5] a dangling call is closed by an error response under its id', () => {
    const draft = records.closingRecord(CONTEXT, { id: 'call-1', name: 'ask_user_question' }, 'lost', 'gone');
    expect(draft).toMatchObject({
      type: 'tool_result',
      message: {
        role: 'user',
        parts: [{ functionResponse: { id: 'call-1', name: 'ask_user_question', response: { error: 'lost' } } }],
      },
      toolCallResult: { callId: 'call-1', status: 'error', executionStatus: 'not_started', errorType: 'gone' },
    });
  });

  test('[BT-5] a call without an id is closed by a response without an id', () => {
    const draft = records.closingRecord(CONTEXT, { name: 'read_file' }, 'lost');
    expect(draft.message).toStrictEqual({
      role: 'user',
      parts: [{ functionResponse: { name: 'read_file', response: { error: 'lost' } } }],
    });
    expect(draft.toolCallResult).toMatchObject({ callId: '', status: 'error' });
  });

  test('[TR-1] records are linked one to the next, the first to what is in the file', () => {
    fc.assert(
      fc.property(fc.array(fc.uuid(), { maxLength: 20 }), fc.option(fc.uuid()), (ids, last) => {
        const left = [...ids];
        const context = { ...CONTEXT, newId: () => left.shift()! };
        const linked = records.linkRecords(
          ids.map(() => records.userRecord(context, message)),
          last,
        );
        expect(linked.map((record) => record.uuid)).toEqual(ids);
        expect(linked.map((record) => record.parentUuid)).toEqual([last, ...ids].slice(0, ids.length));
      }),
    );
  });
});

describe('turn_result', () => {
  const turn: TurnResult = {
    promptId: 'p',
    end: { state: 'completed', stopReason: 'end_turn' },
    startedAt: 1,
    promptText: 'ask',
    resultText: 'said',
  };
  const now = CONTEXT.now().getTime();

  test.each<[string, Partial<TurnResult>, Fields]>([
    [
      'a finished turn',
      { originatorClientId: 'client' },
      {
        promptId: 'p',
        state: 'completed',
        stopReason: 'end_turn',
        startedAt: 1,
        endedAt: now,
        promptText: 'ask',
        resultText: 'said',
        originatorClientId: 'client',
      },
    ],
    [
      'a cancelled turn that said nothing',
      { end: { state: 'cancelled', cancelledAt: 5 }, resultText: '' },
      {
        promptId: 'p',
        state: 'cancelled',
        stopReason: 'cancelled',
        startedAt: 1,
        cancelledAt: 5,
        endedAt: now,
        promptText: 'ask',
      },
    ],
    [
      'a failed turn',
      { end: { state: 'error', message: 'refused' } },
      {
        promptId: 'p',
        state: 'error',
        error: { message: 'refused' },
        startedAt: 1,
        endedAt: now,
        promptText: 'ask',
        resultText: 'said',
      },
    ],
  ])('[ACP-7, TR-1] %s has the recorded keys in order', (_, change, payload) => {
    const draft = turnResultRecord(CONTEXT, { ...turn, ...change });
    expect(draft).toMatchObject({ type: 'system', provenance: 'system', subtype: 'turn_result' });
    expect(JSON.stringify(draft.systemPayload)).toBe(JSON.stringify(payload));
  });

  test('[ACP-7] long texts are cut to what a reader takes, between characters', () => {
    fc.assert(
      fc.property(fc.nat(3), (offset) => {
        const long = 'x'.repeat(32_766 + offset) + '🙂'.repeat(3);
        const draft = turnResultRecord(CONTEXT, { ...turn, promptText: long, resultText: long });
        const payload = draft.systemPayload as { promptText: string; resultText: string };
        expect(payload).toMatchObject({
          promptTextTruncated: true,
          resultTruncated: true,
          resultCode: 'RESULT_TEXT_TRUNCATED',
        });
        for (const text of [payload.promptText, payload.resultText]) {
          expect(text.length).toBeLessThanOrEqual(32_768);
          expect(text.length).toBeGreaterThan(32_766);
          expect(text).not.toMatch(/[\ud800-\udbff]$/);
          expect(long.startsWith(text)).toBe(true);
        }
      }),
    );
  });
});
