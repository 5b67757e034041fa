// Prompt turns of a fresh session: many deltas, few deltas, a question.
import { INITIALIZE, sleep } from '../lib/acp.mjs';
import { homeOf, startAgent, stopAgent, supports } from '../lib/agents.mjs';
import { runLimit } from '../lib/bench.mjs';
import { QUESTION_ARGS } from '../lib/gen.mjs';
import { deltaTexts } from '../lib/model-script.mjs';
import { answerQuestions } from '../lib/questions.mjs';

const SHORT_DELTAS = 5;
const LONG_TURNS = ['1st turn', '2nd turn'];

const LONG_COLUMNS = [
  { key: 'ms', label: 'ms', spread: true },
  { key: 'first', label: 'first frame ms' },
  { key: 'perDelta', label: 'us per delta, whole turn' },
  { key: 'perDeltaAfterFirst', label: 'us per delta after first frame' },
  { key: 'chunks', label: 'chunk frames' },
  { key: 'kilobytes', label: 'kB out' },
  { key: 'cpu', label: 'CPU ms' },
  { key: 'peak', label: 'peak RSS MB' },
];
const SHORT_COLUMNS = [
  { key: 'ms', label: 'ms', spread: true },
  { key: 'beyondModel', label: "ms beyond the model's own", spread: true },
  { key: 'first', label: 'first frame ms' },
  { key: 'cpu', label: 'CPU ms' },
];
const QUESTION_COLUMNS = [
  { key: 'ms', label: 'turn ms', spread: true },
  { key: 'toPermission', label: 'prompt to request_permission ms' },
  { key: 'toUpdate', label: 'answer to completed update ms', spread: true },
  { key: 'beyondFsync', label: 'beyond an fdatasync ms' },
  { key: 'toEnd', label: 'answer to end_turn ms' },
  { key: 'fsync', label: 'fdatasync of this disk ms' },
];

/** Tables `{long, short, question}`. */
export async function promptSuite(bench) {
  const { deltas, deltaLength, runs } = bench.options;
  const tables = {
    long: bench.table(`Prompt turn: ${deltas} text deltas of ${deltaLength} characters, sent by the model at once`),
    short: bench.table(`Prompt turn: ${SHORT_DELTAS} deltas, warm`),
    question: bench.table('Prompt turn with a question'),
  };
  for (let round = 0; round < runs; round++) {
    for (const agent of bench.agents.filter((candidate) => supports(candidate, 'prompt'))) {
      await promptOnce(bench, tables, agent);
    }
  }
  bench.say(tables.long.markdown(LONG_COLUMNS));
  bench.say(tables.short.markdown(SHORT_COLUMNS));
  bench.say(tables.question.markdown(QUESTION_COLUMNS));
  return tables;
}

async function promptOnce(bench, tables, agent) {
  const questions = answerQuestions('SQLite');
  const client = startAgent(bench, agent, { onRequest: questions.onRequest });
  try {
    await client.request('initialize', INITIALIZE, bench.options.timeout);
    const fresh = await client.request('session/new', { cwd: bench.cwd, mcpServers: [] }, bench.options.timeout);
    const session = { bench, client, sessionId: fresh.result.sessionId, questions };
    await sleep(bench.options.settle);
    for (const name of LONG_TURNS) await longTurn(session, tables.long, agent.name, name);
    for (let i = 0; i < 3; i++) await shortTurn(session, tables.short, agent.name);
    for (let i = 0; i < 2; i++) await questionTurn(session, tables.question, agent);
    if (client.junk.length) tables.long.fail(agent.name, `junk on stdout: ${client.junk[0].slice(0, 60)}`);
  } catch (error) {
    tables.long.fail(agent.name, error.message.slice(0, 300));
  }
  await stopAgent(bench, client);
}

/** One turn: `{ms, sentAt, endedAt, first, updates, bytes, modelMs, cpu, peak, stopReason}`. */
async function turn({ bench, client, sessionId }, text) {
  client.takeUpdates();
  const before = client.usage();
  const seen = bench.model.requests.length;
  const params = { sessionId, prompt: [{ type: 'text', text }] };
  const response = await client.request('session/prompt', params, bench.options.timeout);
  const sentAt = response.at - response.ms;
  const first = client.firstUpdateAt - sentAt;
  const after = client.usage();
  const lines = client.takeUpdates();
  // Whatever the agent does after a turn must not be charged to the next.
  await sleep(bench.options.rest);
  const requests = bench.model.requests.slice(seen);
  return {
    ms: response.ms,
    sentAt,
    endedAt: response.at,
    first,
    updates: lines.map((line) => JSON.parse(line.toString('utf8')).params.update),
    bytes: lines.reduce((sum, line) => sum + line.length + 1, 0),
    requests,
    cpu: after.cpuMs - before.cpuMs,
    peak: after.peakMaxMB,
    stopReason: response.result.stopReason,
  };
}

const textChunks = (updates) =>
  updates.filter((update) => update.sessionUpdate === 'agent_message_chunk' && update.content.text !== '');

function textFault({ updates, stopReason }, want) {
  const got = textChunks(updates)
    .map((update) => update.content.text)
    .join('');
  if (got !== want) return `text differs: ${got.length} characters, want ${want.length}`;
  return stopReason === 'end_turn' ? null : `stopReason ${stopReason}`;
}

async function longTurn(session, table, agentName, turnName) {
  const { deltas, deltaLength } = session.bench.options;
  const done = await turn(session, `[[text k=${deltas} len=${deltaLength}]]`);
  const fault = textFault(done, deltaTexts(deltas, deltaLength).join(''));
  const row = `${agentName}, ${turnName}`;
  if (fault) return table.fail(row, fault);
  const { ms, first, bytes, cpu, peak } = done;
  const chunks = textChunks(done.updates).length;
  const perDelta = (ms * 1_000) / deltas;
  const perDeltaAfterFirst = ((ms - first) * 1_000) / deltas;
  return table.add(row, { ms, first, perDelta, perDeltaAfterFirst, chunks, kilobytes: bytes / 1e3, cpu, peak });
}

async function shortTurn(session, table, agentName) {
  const done = await turn(session, `[[text k=${SHORT_DELTAS} len=6]]`);
  const fault = textFault(done, deltaTexts(SHORT_DELTAS, 6).join(''));
  if (fault) return table.fail(agentName, fault);
  const modelMs = done.requests.find((request) => request.kind === 'text').ms;
  return table.add(agentName, { ms: done.ms, beyondModel: done.ms - modelMs, first: done.first, cpu: done.cpu });
}

async function questionTurn(session, table, agent) {
  const { bench, client, questions } = session;
  questions.asked.length = 0;
  let completedAt = Number.NaN;
  client.onUpdate = (line) => {
    if (line.includes('tool_call_update') && line.includes('"completed"')) completedAt = performance.now();
  };
  const args = Buffer.from(JSON.stringify(QUESTION_ARGS)).toString('base64');
  const done = await turn(session, `[[tool name=ask_user_question args=${args}]]`);
  client.onUpdate = undefined;
  const fault = questionFault(done, questions.asked);
  if (fault) return table.fail(agent.name, fault);
  const { medianMs: fsync } = await runLimit(bench, 'fsync.mjs', `${homeOf(bench, agent)}/fsync.probe`);
  const [{ at, answeredAt }] = questions.asked;
  const toUpdate = completedAt - answeredAt;
  const times = { toUpdate, beyondFsync: toUpdate - fsync, toEnd: done.endedAt - answeredAt, fsync };
  return table.add(agent.name, { ms: done.ms, toPermission: at - done.sentAt, ...times });
}

function questionFault(done, asked) {
  if (asked.length !== 1) return `${asked.length} questions were asked, want 1`;
  const { toolCallId } = asked[0].params.toolCall;
  const update = done.updates.find(
    (candidate) => candidate.toolCallId === toolCallId && candidate.status === 'completed',
  );
  if (!update) return 'no completed update of the question';
  if (!JSON.stringify(update.content).includes('SQLite')) return 'the completed update lacks the answer';
  const told = done.requests.find((request) => request.kind === 'toolDone');
  if (!told?.result.includes('SQLite')) return 'the answer did not reach the model';
  return textFault(done, 'TOOL-DONE');
}
