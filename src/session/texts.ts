/**
 * What records say in words: to the model in a function response, and to a person who reads the transcript.
 * None of them blames the person for what nobody decided.
 */

/** A call that the program, its wait or a later message ended before it had a result; the model hears it when the history goes on. */
export const CALL_NEVER_FINISHED =
  'No result is known for this call: the conversation went on before one was recorded. Nobody declined it. Call the tool again if it is still needed.';

/** The same loss, shown on the card of a replayed call. */
export const RESULT_NOT_IN_HISTORY =
  'The saved history holds no result for this call; the program stopped before the call was finished.';

/** Stands in a replay where the records that came before are lost. */
export const HISTORY_GAP = 'Some of the conversation before this point is missing from the saved history.';

/** A person cancelled the turn before the call ran. */
export const CANCELLED_BEFORE_RUN = 'The turn was cancelled before this call ran.';

/** The model's answer failed behind the call, or could not be saved; shown on the call's card, never recorded. */
export const ANSWER_BROKE_OFF = 'The answer that made this call could not be completed, so the call did not run.';

/** A person submitted the question without a usable answer. */
export const NO_ANSWER_GIVEN = 'The question was submitted, but no answer was given.';

/** An earlier call of the same batch was declined, so this one was neither asked about nor run. */
export const SKIPPED_AFTER_DECLINE =
  'Not run: an earlier call of the same turn was declined. Wait for what the person says next.';

/** The person declined the call. */
export function declinedByPerson(toolName: string): string {
  return `The person declined the call of ${toolName}.`;
}

/** The client answered the permission request with something that is no answer. */
export function permissionFailed(toolName: string, reason: string): string {
  return `Asking for permission to run ${toolName} failed: ${reason}`;
}

/** The model called a tool that the session does not offer. */
export function unknownTool(toolName: string): string {
  return `There is no tool named ${toolName} in this session. Use one of the tools that were offered.`;
}

export const UNREADABLE_CALL =
  'The arguments of this call are not a JSON object, so it did not run. Call again with valid JSON.';

/** The session is in plan mode and the call would change something. */
export function refusedInPlanMode(toolName: string): string {
  return `The session is in plan mode, in which ${toolName} does not run: read, search and ask, and say what you would do. The person leaves plan mode when it is to be done.`;
}

/** The turn was stopped while the call ran; `heard` is what the call had said by then. */
export function stoppedWhileRunning(heard: string): string {
  const text = 'The turn was stopped while this call ran. A part of its work may be done.';
  return heard === '' ? text : `${text} Its output until then:\n${heard}`;
}

/** The tool did not stop when it was told to. */
export const STILL_RUNNING =
  'The turn was stopped while this call ran, and the call did not end when it was told to. What it does from here on is not known.';

/** The tool broke for a reason that it did not foresee; `reason` is one line. */
export function toolBroke(toolName: string, reason: string): string {
  return `The tool ${toolName} failed unexpectedly: ${reason}`;
}

/** Nobody allowed, rejected or answered a call before the wait ended; recorded only with the switch off. */
export const NOBODY_DECIDED = 'The wait for a decision ended before there was one, so this call did not run.';

/** Nobody answered a question before its wait ended; shown on its card, never recorded. */
export const NOBODY_ANSWERED = 'The wait for an answer ended before anybody gave one. The question is still open.';

/** A call's result could not be written, so the turn fails; shown on its card, never recorded. */
export const RESULT_NOT_SAVED = 'The result of this call could not be saved, so it does not count.';

/** What the model is told when it is to summarize a conversation. */
export const SUMMARY_INSTRUCTION =
  'You summarize a conversation between a person and a coding agent, so that the agent can go on from the summary alone. ' +
  'Write down what the person wants and decided, what was done and found, which files and commands matter and why, and ' +
  'what is left to do. Keep names, paths and numbers exact. Answer with the summary and nothing else.';

/** What stands before the conversation that is to be summarized. */
export const SUMMARY_REQUEST = 'Summarize this conversation:';

/** Begins a history whose older part was replaced. */
export function summaryMessage(summary: string): string {
  return `The earlier part of this conversation was replaced by this summary:\n\n${summary}`;
}

/** The model's side of it, so that the history goes on in turns. */
export const SUMMARY_ACKNOWLEDGED = 'Understood. I go on from this summary.';
