/** Child to daemon on a load or resume: a question is open and can be asked again. Daemon to child on a prompt: ask it. */
export const RESTORE_ASK_USER_QUESTION = 'qwen.daemon.restoreAskUserQuestion';
/** Daemon to child on a load or resume: nobody is there to answer, so open nothing. */
export const SUPPRESS_RESTORE_ASK_USER_QUESTION = 'qwen.daemon.suppressRestoreAskUserQuestion';
/** Daemon to child on a prompt: go on with the interrupted turn, there is no new message. */
export const CONTINUE_LAST_TURN = 'qwen.daemon.continueLastTurn';
/** Daemon to child on a permission reply: why it was cancelled, where no person decided it. */
export const PERMISSION_CANCEL_REASON = 'qwen.daemon.permissionCancelReason';
/** Daemon to child on `session/new`, `load`, `resume`: the time, in ms since the epoch, by which it must have answered. */
export const SESSION_INITIALIZATION_DEADLINE_MS = 'qwen.daemon.sessionInitializationDeadlineMs';
/** Both ways at `initialize`: the daemon pings the child, which must answer. */
export const CHANNEL_LIVENESS = 'qwen.daemon.channelLiveness';
/** Both ways at `initialize`: the child may report what keeps its sessions busy. */
export const ACTIVE_WORK_HEARTBEAT = 'qwen.daemon.activeWorkHeartbeat';
/** Daemon to child at `initialize`: it would like to know where start-up time went. */
export const CHANNEL_STARTUP_PROFILE = 'qwen.daemon.channelStartupProfile';
/** Client to child on a load: `bulk` returns the replay in the response instead of as notifications. */
export const LOAD_REPLAY_MODE = 'qwen.session.loadReplayMode';
/** Client to child on a bulk load: how many records of the tail to replay. */
export const LOAD_REPLAY_PAGE_SIZE = 'qwen.session.loadReplayPageSize';
/** Child to client on a bulk load's response: the replay. */
export const LOAD_REPLAY = 'qwen.session.loadReplay';
/** On each update of a bulk replay: the transcript record that it comes from. */
export const RECORD_ID = 'qwen.session.recordId';
/** Client to child on a permission reply: the answers, where the client cannot put `answers` beside `outcome`. */
export const ANSWERS = 'qwen.answers';
/** Child to client on a prompt's response: where the session can be branched after this turn. */
export const BRANCH_POINT = 'qwen.branchPoint';
/** Child to client on the response of a prompt that was cancelled: when, and after how long. */
export const PROMPT_CANCELLED = 'qwen.promptCancelled';
/** Daemon to child on a prompt: the client can approve goals that the model proposes. */
export const GOAL_PROPOSAL_APPROVAL = 'qwen.goalProposalApproval';
/** Daemon to child in its client capabilities: it knows goals that the model proposes. */
export const GOAL_PROPOSALS = 'qwen.goalProposals';
/** Client to child on `session/new`: the id that the new session is to have. */
export const SESSION_ID = 'qwen-code/sessionId';
/** Daemon to child on a prompt: which tracked prompt this is and whose. */
export const INVOCATION = 'qwen-code/invocation';
/** Child to daemon at `initialize`: the guard of external tools is in force; the reference's daemon demands it. */
export const EXTERNAL_TOOL_GUARD_READY = 'qwen-code/external-tool-guard-ready';
/** Daemon to child at `initialize`: proof that it is the process that spawned the child. */
export const PRIVATE_PARENT_CAPABILITY = 'qwen-code/private-parent-capability';

/** On a permission request's tool call: what kind of interaction it is, `user_question` for ours. */
export const INTERACTION_KIND = 'qwenInteractionKind';
/** On a permission request's tool call: the questions. */
export const QUESTIONS = 'qwenQuestions';
/** On a replayed update: the transcript records and the segment that it comes from. */
export const TRANSCRIPT = 'qwenTranscript';
/** On the response of a load or resume: whether background work runs in the session. */
export const HAS_RUNNING_BACKGROUND_TASKS = 'hasRunningBackgroundTasks';
/** On a tool call or its update: the tool's name, as the model called it. */
export const TOOL_NAME = 'toolName';
/** On a tool call or its update: where the tool comes from, `builtin` for ours. */
export const PROVENANCE = 'provenance';
/** On a tool call: `preparing` while the model is still writing it. */
export const PHASE = 'phase';
/** On a replayed update: its record's time, in ms since the epoch. */
export const TIMESTAMP = 'timestamp';
/** On a message chunk: the tokens that one model answer took. */
export const USAGE = 'usage';
/** On a message chunk with usage: how long the model took, in ms. */
export const DURATION_MS = 'durationMs';
/** On a replayed message chunk without text: a person ended the turn here; says which turn, when and after how long. */
export const CANCELLED_TURN = 'promptCancelled';
/** On a replayed message chunk: it stands for itself and is not joined with its neighbours. */
export const DISCRETE_MESSAGE = 'qwenDiscreteMessage';
/** On a message chunk: `slash_command` where a command of the person's printed it. */
export const SOURCE = 'source';
/** On a command's output: how many tokens a compression left of how many. */
export const CONTEXT_COMPRESSION = 'contextCompression';
/** On a plan: which one it is a new state of. */
export const TODO_PLAN = 'qwenTodoPlan';
/** On a replayed user message: the daemon's id of the prompt. */
export const PROMPT_ID = 'promptId';

/** On a request for the list of sessions: how many a page is to have. */
export const LIST_SIZE = 'size';

/** W3C Trace Context and Baggage: all that an outside caller's `_meta` may hand on. */
export const TRACE_CONTEXT = ['traceparent', 'tracestate', 'baggage'] as const;
