// One fresh agent, one timed load, then the checks: frames, hint, the file, the restored question, the model's history.
import fs from 'node:fs';
import { INITIALIZE, sleep } from '../lib/acp.mjs';
import { qwenHomeOf, startAgent, stopAgent } from '../lib/agents.mjs';
import { missingHistory, readFrames } from '../lib/expect.mjs';
import { QUESTION_CALL_ID } from '../lib/gen.mjs';
import { place } from '../lib/transcripts.mjs';
import { answerQuestions } from '../lib/questions.mjs';

const HINT = 'qwen.daemon.restoreAskUserQuestion';
/** Long enough for frames that follow the response, which must not be there. */
const STRAGGLERS_MS = 150;

/** Adds a sample to the table, or the reason why the answer was wrong. */
export async function loadOnce(bench, table, agent, transcript, mode) {
  const file = place(qwenHomeOf(bench, agent), bench.cwd, transcript);
  const questions = answerQuestions('SQLite');
  const client = startAgent(bench, agent, { restore: mode.restore, onRequest: questions.onRequest });
  try {
    await client.request('initialize', INITIALIZE, bench.options.timeout);
    await sleep(bench.options.settle);
    const { sample, fault } = await timedLoad(bench, client, transcript, mode);
    const wrong =
      fault ??
      writeFault(file, transcript) ??
      (await restoreFault(bench, client, transcript, mode, questions, sample)) ??
      (await historyFault(bench, client, agent, transcript, mode));
    if (wrong) table.fail(agent.name, wrong);
    else table.add(agent.name, sample);
  } catch (error) {
    table.fail(agent.name, error.message.slice(0, 300));
  }
  await stopAgent(bench, client);
}

async function timedLoad(bench, client, transcript, mode) {
  const before = client.usage();
  client.takeUpdates();
  const params = { sessionId: transcript.sessionId, cwd: bench.cwd };
  if (mode.method.startsWith('session/')) Object.assign(params, { mcpServers: [] }, mode.meta && { _meta: mode.meta });
  const response = await client.request(mode.method, params, bench.options.timeout);
  const sentAt = response.at - response.ms;
  const first = client.firstUpdateAt ? client.firstUpdateAt - sentAt : Number.NaN;
  const arrived = client.updates.length;
  const after = client.usage();
  await sleep(STRAGGLERS_MS);
  const lines = client.takeUpdates();
  const streamed = readFrames(lines.slice(0, arrived), transcript.sessionId);
  const late = readFrames(lines.slice(arrived), transcript.sessionId);
  const bytes = lines.slice(0, arrived).reduce((sum, line) => sum + line.length + 1, response.bytes);
  const hint = response.result?._meta?.[HINT] === true;
  const answer = { streamed: streamed.signatures, result: response.result, bytes: response.bytes };
  const fault =
    streamed.error ??
    late.error ??
    (client.junk.length ? `junk on stdout: ${client.junk[0].slice(0, 60)}` : null) ??
    mode.fault(transcript, answer) ??
    (late.signatures.length ? `${late.signatures.length} replay frames after the response` : null) ??
    (hint !== (mode.restore === true) ? `restore hint ${hint}` : null);
  const sample = {
    ms: response.ms,
    first,
    frames: streamed.signatures.length,
    megabytes: bytes / 1e6,
    cpu: after.cpuMs - before.cpuMs,
    idle: before.peakMaxMB,
    peak: after.peakMaxMB,
  };
  return { sample, fault };
}

const writeFault = (file, transcript) =>
  fs.statSync(file).size === transcript.bytes ? null : 'the load changed the transcript';

/** The restore prompt must ask the trailing call again, and the answer must reach the model. */
async function restoreFault(bench, client, transcript, mode, questions, sample) {
  if (!mode.restore) return null;
  const seen = bench.model.requests.length;
  const params = { sessionId: transcript.sessionId, prompt: [], _meta: { [HINT]: true } };
  const response = await client.request('session/prompt', params, bench.options.timeout);
  const asked = questions.asked[0];
  if (asked?.params.toolCall?.toolCallId !== QUESTION_CALL_ID) return 'the trailing call was not asked again';
  if (questions.asked.length > 1) return 'the trailing call was asked twice';
  if (response.result.stopReason !== 'end_turn') return `stopReason ${response.result.stopReason}`;
  const done = bench.model.requests.slice(seen).find((request) => request.kind === 'toolDone');
  if (!done?.result.includes('SQLite')) return 'the answer did not reach the model';
  sample.reissued = asked.at - (response.at - response.ms);
  sample.turn = response.ms;
  return null;
}

/** A resume that read nothing would be fast: the next turn must carry the whole history to the model. */
async function historyFault(bench, client, agent, transcript, mode) {
  if (!transcript.history.length || mode.question || mode.meta || mode.method.startsWith('qwen/')) return null;
  if (agent.historyCheck === false) return null;
  const { requests, keepBodies } = bench.model;
  const seen = requests.length;
  keepBodies.on = true;
  const prompt = [{ type: 'text', text: '[[text k=1 len=6]]' }];
  await client.request('session/prompt', { sessionId: transcript.sessionId, prompt }, bench.options.timeout);
  keepBodies.on = false;
  const request = requests.slice(seen).find((candidate) => candidate.kind === 'text');
  if (!request) return 'no model request after the load';
  return missingHistory(request.body, request.dialect, transcript.history);
}
