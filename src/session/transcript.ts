import type { Content } from '@google/genai';
import type { UsageMetadata } from './ports.ts';

/** How a tool call ended, beside its function response. */
export interface ToolCallResult {
  readonly callId: string;
  readonly status: 'success' | 'cancelled' | 'error';
  readonly executionStatus?: 'success' | 'not_started' | 'error';
  readonly resultDisplay?: unknown;
  readonly error?: unknown;
  readonly errorType?: string;
}

/**
 * One line of a session's JSON Lines file, in the reference's format. Unknown keys and system subtypes are kept on disk
 * and never rewritten; only the keys named here are read.
 */
export interface TranscriptRecord {
  readonly uuid: string;
  readonly parentUuid: string | null;
  readonly sessionId: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly type: 'user' | 'assistant' | 'tool_result' | 'system';
  readonly subtype?: string;
  readonly provenance?: string;
  readonly cwd?: string;
  readonly version?: string;
  readonly gitBranch?: string;
  /** Present on every type but `system`. */
  readonly message?: Content;
  readonly model?: string;
  readonly usageMetadata?: UsageMetadata;
  /** Tokens, on an assistant record. */
  readonly contextWindowSize?: number;
  readonly toolCallResult?: ToolCallResult;
  readonly systemPayload?: unknown;
  /** The daemon's id of the prompt, on a user record. */
  readonly daemonPromptId?: string;
  /**
   * Ours, on an assistant record: the provider's own id of a call whose stored id we had to invent or make distinct;
   * null where the provider gave none.
   */
  readonly providerCallIds?: Readonly<Record<string, string | null>>;
}

/** System subtypes that this program reads or writes. */
export const SUBTYPE = {
  fileHistorySnapshot: 'file_history_snapshot',
  uiTelemetry: 'ui_telemetry',
  branchCheckpoint: 'branch_checkpoint',
  turnResult: 'turn_result',
  chatCompression: 'chat_compression',
  rewind: 'rewind',
  customTitle: 'custom_title',
  slashCommand: 'slash_command',
} as const;
