import type { Content } from '@google/genai';
import type { AuthType, UsageMetadata } from './ports.ts';
import { ASK_USER_QUESTION } from './question.ts';
import { SUBTYPE, type ToolCallResult, type TranscriptRecord } from './transcript.ts';

/** A record before it has a place in the file: all but its link to the one before. */
export type RecordDraft = Omit<TranscriptRecord, 'parentUuid'>;

/** What every record of a session says, and where its id and time come from. */
export interface RecordContext {
  readonly sessionId: string;
  readonly cwd: string;
  /** This program's version. */
  readonly version: string;
  readonly gitBranch?: string | undefined;
  readonly newId: () => string;
  readonly now: () => Date;
}

/** Links a batch behind `lastUuid` (null: the file's first record), each record to the one before it. */
export function linkRecords(drafts: readonly RecordDraft[], lastUuid: string | null): TranscriptRecord[] {
  let parentUuid = lastUuid;
  return drafts.map((draft) => {
    // `uuid` and `parentUuid` come first in a line; readers that scan bytes count on it.
    const record: TranscriptRecord = { uuid: draft.uuid, parentUuid, ...omitUuid(draft) };
    parentUuid = draft.uuid;
    return record;
  });
}

function omitUuid({ uuid: _, ...rest }: RecordDraft): Omit<RecordDraft, 'uuid'> {
  return rest;
}

const PROVENANCE = {
  user: 'real_user',
  assistant: 'assistant_output',
  tool_result: 'tool_result',
  system: 'system',
} as const;

function base(context: RecordContext, type: TranscriptRecord['type']): RecordDraft {
  const { gitBranch } = context;
  return {
    uuid: context.newId(),
    sessionId: context.sessionId,
    timestamp: context.now().toISOString(),
    type,
    provenance: PROVENANCE[type],
    cwd: context.cwd,
    version: context.version,
    ...(gitBranch === undefined ? {} : { gitBranch }),
  };
}

/** A record that is no part of the conversation. */
export function systemRecord(context: RecordContext, subtype: string, systemPayload: unknown): RecordDraft {
  return { ...base(context, 'system'), subtype, systemPayload };
}

/** What the person said. `daemonPromptId` is the daemon's id of the prompt, where a daemon drove it. */
export function userRecord(context: RecordContext, message: Content, daemonPromptId?: string): RecordDraft {
  return {
    ...base(context, 'user'),
    ...(daemonPromptId === undefined ? {} : { daemonPromptId }),
    message,
  };
}

export interface AssistantTurn {
  readonly model: string;
  readonly message: Content;
  readonly usage?: UsageMetadata | undefined;
  /** Tokens; left out when unknown. */
  readonly contextWindow?: number | undefined;
  readonly providerCallIds?: TranscriptRecord['providerCallIds'] | undefined;
}

/** One answer of the model, its parts verbatim. */
export function assistantRecord(context: RecordContext, turn: AssistantTurn): RecordDraft {
  return {
    ...base(context, 'assistant'),
    model: turn.model,
    message: turn.message,
    ...(turn.usage === undefined ? {} : { usageMetadata: turn.usage }),
    ...(turn.contextWindow === undefined ? {} : { contextWindowSize: turn.contextWindow }),
    ...(turn.providerCallIds === undefined ? {} : { providerCallIds: turn.providerCallIds }),
  };
}

/** The response to one call, and how the call ended. */
export function toolResultRecord(context: RecordContext, message: Content, result?: ToolCallResult): RecordDraft {
  return {
    ...base(context, 'tool_result'),
    message,
    ...(result === undefined ? {} : { toolCallResult: result }),
  };
}

/** A function response as the user content that a record holds. */
export function responseContent(
  call: { readonly id?: string | undefined; readonly name: string },
  response: { readonly output: unknown } | { readonly error: unknown },
): Content {
  const id = call.id === undefined ? {} : { id: call.id };
  return { role: 'user', parts: [{ functionResponse: { ...id, name: call.name, response } }] };
}

/** Closes a call that never ran, or whose result is lost: an error response with `error` as its text. */
export function closingRecord(
  context: RecordContext,
  call: { readonly id?: string | undefined; readonly name: string },
  error: string,
  errorType?: string,
): RecordDraft {
  const message = responseContent(call, { error });
  const type = errorType === undefined ? {} : { errorType };
  return toolResultRecord(context, message, {
    // Without a result beside it, readers take the response of a call that has no id for a success.
    callId: call.id ?? '',
    status: 'error',
    // A question cannot have been answered; how far another tool got is not known.
    ...(call.name === ASK_USER_QUESTION && { executionStatus: 'not_started' }),
    ...type,
  });
}

/** Marks where a person's turn began. This program keeps no backups of files, so the snapshot is empty. */
export function fileHistorySnapshotRecord(context: RecordContext, promptId: string): RecordDraft {
  const snapshot = { promptId, timestamp: context.now().toISOString(), trackedFileBackups: {} };
  return systemRecord(context, SUBTYPE.fileHistorySnapshot, { snapshots: [snapshot] });
}

export interface ModelResponse {
  readonly responseId: string;
  readonly model: string;
  /** Milliseconds. */
  readonly durationMs: number;
  /** Milliseconds to the first token. */
  readonly ttftMs: number;
  readonly usage: UsageMetadata;
  readonly promptId: string;
  readonly authType: AuthType;
}

/** Telemetry of one answer of the model. Its text is left out: the assistant record has it. */
export function apiResponseRecord(context: RecordContext, response: ModelResponse): RecordDraft {
  const { usage } = response;
  return systemRecord(context, SUBTYPE.uiTelemetry, {
    uiEvent: {
      'event.name': 'qwen-code.api_response',
      'event.timestamp': context.now().toISOString(),
      response_id: response.responseId,
      model: response.model,
      status_code: 200,
      duration_ms: response.durationMs,
      input_token_count: usage.promptTokenCount ?? 0,
      output_token_count: usage.candidatesTokenCount ?? 0,
      cached_content_token_count: usage.cachedContentTokenCount ?? 0,
      thoughts_token_count: usage.thoughtsTokenCount ?? 0,
      total_token_count: usage.totalTokenCount ?? 0,
      prompt_id: response.promptId,
      auth_type: response.authType,
      ttft_ms: response.ttftMs,
    },
  });
}

export interface EndedCall {
  readonly callId: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly durationMs: number;
  readonly status: ToolCallResult['status'];
  readonly executionStatus: NonNullable<ToolCallResult['executionStatus']>;
  readonly promptId: string;
  readonly toolType: 'native' | 'mcp';
}

/** Telemetry of one ended tool call. */
export function toolCallRecord(context: RecordContext, call: EndedCall): RecordDraft {
  const promptId = { prompt_id: call.promptId };
  // The recorded lines have it in one of two places, by how the call ended.
  const early = call.status === 'cancelled';
  return systemRecord(context, SUBTYPE.uiTelemetry, {
    uiEvent: {
      'event.name': 'qwen-code.tool_call',
      'event.timestamp': context.now().toISOString(),
      call_id: call.callId,
      ...(early ? promptId : {}),
      function_name: call.name,
      function_args: call.args,
      duration_ms: call.durationMs,
      status: call.status,
      execution_status: call.executionStatus,
      success: call.status === 'success',
      ...(early ? {} : promptId),
      tool_type: call.toolType,
    },
  });
}

/** Where a later branch may start: the turn between `startExclusive` (null: the session's start) and its last answer. */
export function branchCheckpointRecord(
  context: RecordContext,
  startExclusive: string | null,
  assistantRecord: string,
): RecordDraft {
  return systemRecord(context, SUBTYPE.branchCheckpoint, {
    v: 1,
    startExclusiveRecordUuid: startExclusive,
    assistantRecordUuid: assistantRecord,
  });
}
