// The ways to load a session, each with its request and with the replay that is right for it.
import { difference, signaturesOf, suffixDifference } from '../lib/expect.mjs';

// An agent may cut a bulk answer at 32 MiB or 10,000 updates. What is far below both must be whole.
const MAY_BE_CUT = { updates: 5_000, bytes: 16e6 };

const bulkKeys = { 'qwen.session.loadReplayMode': 'bulk' };
const pageKeys = { ...bulkKeys, 'qwen.session.loadReplayPageSize': 100 };
const nothing = (_, { streamed }) => difference(streamed, []);
const streamedClosed = (transcript, { streamed }) => difference(streamed, transcript.closed);

/**
 * A mode: `method`, `meta` of the request, `question` (the transcript ends in an unanswered question), `restore` (the
 * switch is on), `whole` (the whole history is replayed), `fault(transcript, answer)` with `answer = {streamed, result,
 * bytes}`: what is wrong with the replay, or null.
 */
export const MODES = {
  load: { method: 'session/load', whole: true, fault: streamedClosed },
  resume: { method: 'session/resume', fault: nothing },
  bulk: { method: 'session/load', meta: bulkKeys, whole: true, fault: bulkFault },
  page: { method: 'session/load', meta: pageKeys, fault: pageFault },
  loadUpdates: { method: 'qwen/session/loadUpdates', whole: true, fault: updatesFault },
  auq: { method: 'session/load', question: true, whole: true, fault: streamedClosed },
  'auq+flag': {
    method: 'session/load',
    question: true,
    restore: true,
    whole: true,
    fault: (transcript, { streamed }) => difference(streamed, transcript.open),
  },
  'auq-resume+flag': { method: 'session/resume', question: true, restore: true, fault: nothing },
};

export const QUESTION_MODES = Object.keys(MODES).filter((name) => MODES[name].question);

const replayOf = (result) => result?._meta?.['qwen.session.loadReplay'];

function envelopeFault({ streamed, result }) {
  if (streamed.length) return 'bulk also streamed';
  return Array.isArray(replayOf(result)?.updates) ? null : 'no replay envelope';
}

function bulkFault(transcript, answer) {
  const fault = envelopeFault(answer);
  if (fault) return fault;
  const replay = replayOf(answer.result);
  const got = signaturesOf(replay.updates);
  if (!replay.hasMore) return replay.partial ? `partial: ${replay.replayError}` : difference(got, transcript.closed);
  if (got.length < MAY_BE_CUT.updates && answer.bytes < MAY_BE_CUT.bytes) return 'bulk cut far below its limits';
  return suffixDifference(got, transcript.closed);
}

function pageFault(transcript, answer) {
  const fault = envelopeFault(answer);
  if (fault) return fault;
  const replay = replayOf(answer.result);
  if (transcript.count > 200 && !replay.hasMore) return 'page without hasMore';
  return difference(signaturesOf(replay.updates), transcript.page);
}

function updatesFault(transcript, { streamed, result, bytes }) {
  if (streamed.length) return 'loadUpdates also streamed';
  const got = signaturesOf(result?.updates ?? []);
  const cut = got.length < transcript.closed.length && bytes >= MAY_BE_CUT.bytes;
  return cut ? suffixDifference(got, transcript.closed) : difference(got, transcript.closed);
}
