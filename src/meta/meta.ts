import * as key from './keys.ts';

/** `_meta` as it goes out. */
export type Meta = Record<string, unknown>;

export type ReplayMode = { readonly mode: 'stream' } | { readonly mode: 'bulk'; readonly pageSize?: number };

export interface LoadMeta {
  /** Nobody is there to answer: nothing is to be opened. */
  readonly suppressRestore: boolean;
  readonly replay: ReplayMode;
}

/** A prompt that a daemon tracks. */
export interface Invocation {
  readonly promptId?: string;
  readonly originatorClientId?: string;
}

export interface PromptMeta {
  readonly restore: boolean;
  readonly continueLastTurn: boolean;
  readonly invocation?: Invocation;
}

export interface PermissionReplyMeta {
  readonly cancelReason?: string;
  /** As the client sent it, unchecked. */
  readonly answers?: unknown;
}

export interface ActiveWorkHeartbeat {
  readonly v: 1;
  readonly intervalMs: number;
  readonly categories: readonly string[];
}

/** What a daemon asks for, or a child gives, in the handshake. */
export interface HandshakeMeta {
  readonly channelLiveness: boolean;
  readonly activeWorkHeartbeat?: ActiveWorkHeartbeat;
  /** The value of the guard's acknowledgement, on a result. */
  readonly externalToolGuard?: string;
}

/** A replay that is returned instead of sent: `anchorRecordId` is its oldest record, where more can be paged from. */
export interface LoadReplay {
  readonly v: 1;
  readonly updates: readonly unknown[];
  readonly anchorRecordId?: string;
  readonly hasMore?: boolean;
  readonly partial?: boolean;
  readonly replayError?: string;
}

export function readLoadMeta(meta: unknown): LoadMeta {
  const pageSize = positiveInteger(own(meta, key.LOAD_REPLAY_PAGE_SIZE));
  return {
    suppressRestore: own(meta, key.SUPPRESS_RESTORE_ASK_USER_QUESTION) === true,
    replay:
      own(meta, key.LOAD_REPLAY_MODE) === 'bulk'
        ? { mode: 'bulk', ...(pageSize !== undefined && { pageSize }) }
        : { mode: 'stream' },
  };
}

export function readPromptMeta(meta: unknown): PromptMeta {
  const invocation = own(meta, key.INVOCATION);
  const promptId = text(own(invocation, 'promptId'));
  const originatorClientId = text(own(invocation, 'originatorClientId'));
  return {
    restore: own(meta, key.RESTORE_ASK_USER_QUESTION) === true,
    continueLastTurn: own(meta, key.CONTINUE_LAST_TURN) === true,
    ...(isRecord(invocation) && {
      invocation: { ...(promptId && { promptId }), ...(originatorClientId && { originatorClientId }) },
    }),
  };
}

export function readPermissionReplyMeta(meta: unknown): PermissionReplyMeta {
  const cancelReason = text(own(meta, key.PERMISSION_CANCEL_REASON));
  const answers = own(meta, key.ANSWERS);
  return { ...(cancelReason && { cancelReason }), ...(answers !== undefined && { answers }) };
}

/** `sessionId` is not checked to be a valid one. */
export function readNewSessionMeta(meta: unknown): { readonly sessionId?: string } {
  const sessionId = text(own(meta, key.SESSION_ID));
  return sessionId ? { sessionId } : {};
}

export function readListMeta(meta: unknown): { readonly size?: number } {
  const size = positiveInteger(own(meta, key.LIST_SIZE));
  return size === undefined ? {} : { size };
}

/** Of the params or of the result of `initialize`. */
export function readInitializeMeta(meta: unknown): HandshakeMeta {
  const activeWorkHeartbeat = readHeartbeat(own(meta, key.ACTIVE_WORK_HEARTBEAT));
  const externalToolGuard = text(own(meta, key.EXTERNAL_TOOL_GUARD_READY));
  return {
    channelLiveness: own(own(meta, key.CHANNEL_LIVENESS), 'v') === 1,
    ...(activeWorkHeartbeat && { activeWorkHeartbeat }),
    ...(externalToolGuard && { externalToolGuard }),
  };
}

function readHeartbeat(value: unknown): ActiveWorkHeartbeat | undefined {
  const intervalMs = positiveInteger(own(value, 'intervalMs'));
  const categories = own(value, 'categories');
  if (own(value, 'v') !== 1 || intervalMs === undefined || !Array.isArray(categories)) return undefined;
  return { v: 1, intervalMs, categories: categories.filter((name) => typeof name === 'string') };
}

/** `_meta` of the child's `initialize` result; undefined when nothing was asked for. */
export function initializeResultMeta(handshake: HandshakeMeta): Meta | undefined {
  const meta: Meta = {};
  if (handshake.externalToolGuard !== undefined) meta[key.EXTERNAL_TOOL_GUARD_READY] = handshake.externalToolGuard;
  if (handshake.activeWorkHeartbeat) meta[key.ACTIVE_WORK_HEARTBEAT] = handshake.activeWorkHeartbeat;
  if (handshake.channelLiveness) meta[key.CHANNEL_LIVENESS] = { v: 1 };
  return Object.keys(meta).length > 0 ? meta : undefined;
}

/** `_meta` of the response of a load or resume. `open`: a question can be asked again. */
export function loadResponseMeta(response: { readonly open: boolean; readonly replay?: LoadReplay }): Meta {
  return {
    ...(response.replay && { [key.LOAD_REPLAY]: response.replay }),
    [key.HAS_RUNNING_BACKGROUND_TASKS]: false,
    ...(response.open && { [key.RESTORE_ASK_USER_QUESTION]: true }),
  };
}

/** `_meta` of the response of a prompt; undefined when there is nothing to say. */
export function promptResponseMeta(response: {
  readonly branchPoint?: { readonly assistantRecordUuid: string; readonly checkpointUuid: string };
  readonly cancelled?: { readonly cancelledAt: number; readonly elapsedMs: number };
}): Meta | undefined {
  const { branchPoint, cancelled } = response;
  if (branchPoint) return { [key.BRANCH_POINT]: branchPoint };
  return cancelled && { [key.PROMPT_CANCELLED]: cancelled };
}

/** `_meta` of the tool call in a permission request that asks `questions`. */
export function questionMeta(toolName: string, questions: readonly unknown[]): Meta {
  return { [key.TOOL_NAME]: toolName, [key.INTERACTION_KIND]: 'user_question', [key.QUESTIONS]: questions };
}

/** The questions of a permission request's tool call, unchecked; undefined when it asks none. */
export function readQuestionMeta(meta: unknown): readonly unknown[] | undefined {
  const questions = own(meta, key.QUESTIONS);
  return own(meta, key.INTERACTION_KIND) === 'user_question' && Array.isArray(questions) ? questions : undefined;
}

/** One own property of a JSON object; what is inherited, or of no object, counts as absent. */
export function own(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function positiveInteger(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined;
}
