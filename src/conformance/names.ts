// Spelled once more, on purpose: the kit judges what is written elsewhere in this project, so it must not take it from there.

/** Agent to client on a load or resume: a question can be asked again. Client to agent on a prompt: ask it. */
export const RESTORE = 'qwen.daemon.restoreAskUserQuestion';
/** Client to agent on a load or resume: nobody is there to answer. */
export const SUPPRESS = 'qwen.daemon.suppressRestoreAskUserQuestion';
/** Client to agent on a prompt: go on with the interrupted turn. */
export const CONTINUE = 'qwen.daemon.continueLastTurn';
/** Client to agent on a permission reply: why it was cancelled, where no person decided it. */
export const CANCEL_REASON = 'qwen.daemon.permissionCancelReason';
/** Client to agent on a load: `bulk` for the replay in the response. */
export const REPLAY_MODE = 'qwen.session.loadReplayMode';
/** Agent to client on the response of a bulk load. */
export const REPLAY = 'qwen.session.loadReplay';
/** Client to agent on a permission reply: the answers, where it cannot put them beside the outcome. */
export const ANSWERS = 'qwen.answers';
/** On a permission request's tool call. */
export const INTERACTION_KIND = 'qwenInteractionKind';
export const QUESTIONS = 'qwenQuestions';

export const LOAD_UPDATES = 'qwen/session/loadUpdates';
export const CONTINUE_SESSION = 'qwen/control/session/continue';

/** The argument that has an agent restore questions. */
export const SWITCH = '--restore-ask-user-question';
/** The tool that this is about. */
export const QUESTION_TOOL = 'ask_user_question';

/** A method that no agent has: an answer to it says that everything before it has been said. */
export const BARRIER = '_conformance/barrier';

/** Methods of the protocol that an agent may call on its client. */
export const CLIENT_METHODS: readonly string[] = [
  'session/update',
  'session/request_permission',
  'fs/read_text_file',
  'fs/write_text_file',
  'terminal/create',
  'terminal/output',
  'terminal/release',
  'terminal/wait_for_exit',
  'terminal/kill',
  'elicitation/create',
  'elicitation/complete',
  '$/cancel_request',
];
