// The HTTP daemon: how soon it is there, what a session, a load and an event cost, and how many questions can wait.
import fs from 'node:fs';
import { sleep } from '../lib/acp.mjs';
import { qwenHomeOf } from '../lib/agents.mjs';
import { runCommand } from '../lib/bench.mjs';
import { inParallel, startDaemon } from '../lib/daemon.mjs';
import { signaturesOf, suffixDifference } from '../lib/expect.mjs';
import { QUESTION_ARGS } from '../lib/gen.mjs';
import { deltaTexts } from '../lib/model-script.mjs';
import { median } from '../lib/stats.mjs';
import { place, transcriptOf } from '../lib/transcripts.mjs';

export const DAEMON = { records: 10_000, subscribers: 50, creates: 20 };

const ASK = `[[tool name=ask_user_question args=${Buffer.from(JSON.stringify(QUESTION_ARGS)).toString('base64')}]]`;
const ANSWER = 'SQLite';
const LOADER = 'bench';

const START_COLUMNS = [
  { key: 'health', label: 'spawn to /health ms', spread: true },
  { key: 'afterCrash', label: 'the same after a crash ms', spread: true },
  { key: 'first', label: 'first POST /session ms' },
  { key: 'create', label: 'later POST /session ms', spread: true },
];
const LOAD_COLUMNS = [
  { key: 'load', label: 'answer ms' },
  { key: 'seconds', label: 'load to waiting s', spread: true },
  { key: 'vote', label: 'vote ms' },
];
const FAN_OUT_COLUMNS = [
  { key: 'ms', label: 'prompt to the last turn_complete ms', spread: true },
  { key: 'events', label: 'events delivered' },
  { key: 'each', label: 'us an event', spread: true },
];
const WAITING_COLUMNS = [
  { key: 'session', label: 'KB a session' },
  { key: 'question', label: 'KB more while its question waits' },
  { key: 'vote', label: 'vote, median ms' },
];

/** Tables `{start, load, fanOut, waiting}`; `waiting` is how many questions are to wait at once. */
export async function daemonSuite(bench, waiting) {
  const agents = bench.agents.filter((agent) => agent.serve);
  const tables = {
    start: bench.table('Daemon: start and sessions'),
    fanOut: bench.table(`Daemon: a turn of ${bench.options.deltas} deltas for ${DAEMON.subscribers} subscribers`),
    waiting: bench.table(`Daemon: ${waiting} questions wait`),
    load: bench.table(`Daemon: load of ${DAEMON.records} records with an open question`),
  };
  for (const agent of agents) await attempt(tables.waiting, agent, () => waitingOnce(bench, agent, waiting));
  for (let round = 0; round < bench.options.runs; round++) {
    for (const agent of agents) {
      await attempt(tables.start, agent, () => startOnce(bench, agent));
      await attempt(tables.fanOut, agent, () => fanOutOnce(bench, agent));
      await attempt(tables.load, agent, () => loadOnce(bench, agent));
    }
  }
  bench.say(tables.start.markdown(START_COLUMNS));
  bench.say(tables.fanOut.markdown(FAN_OUT_COLUMNS));
  bench.say(tables.waiting.markdown(WAITING_COLUMNS));
  bench.say(tables.load.markdown(LOAD_COLUMNS));
  return tables;
}

async function attempt(table, agent, measure) {
  try {
    table.add(agent.name, await measure());
  } catch (error) {
    table.fail(agent.name, error.message.slice(0, 300));
  }
}

/** Whatever happens to it, the daemon is stopped. */
async function withDaemon(bench, agent, use) {
  const daemon = await startDaemon(bench, agent);
  try {
    return await use(daemon);
  } finally {
    await daemon.stop();
  }
}

async function timed(work) {
  const start = performance.now();
  const result = await work();
  return { ms: performance.now() - start, result };
}

/** A start, sessions, a crash with a question that waits, and a start after it. */
async function startOnce(bench, agent) {
  const node = await runCommand([process.execPath, '-e', '0'], bench.cwd);
  const before = await startDaemon(bench, agent);
  const times = [];
  try {
    for (let at = 0; at <= DAEMON.creates; at++) times.push((await timed(() => before.open(bench.cwd))).ms);
    const asked = await before.open(bench.cwd);
    await before.prompt(asked, ASK);
    await before.waiting(asked);
  } finally {
    await before.crash();
  }
  const [first, ...later] = times;
  return await withDaemon(bench, agent, (after) => ({
    node: node.ms,
    health: before.healthyAt - before.spawnedAt,
    afterCrash: after.healthyAt - after.spawnedAt,
    first,
    create: median(later),
  }));
}

async function fanOutOnce(bench, agent) {
  const { deltas, deltaLength } = bench.options;
  return await withDaemon(bench, agent, async (daemon) => {
    const session = await daemon.open(bench.cwd);
    const readers = await inParallel(Array.from({ length: DAEMON.subscribers }), () => daemon.subscribe(session));
    await sleep(bench.options.settle);
    const start = performance.now();
    await daemon.prompt(session, `[[text k=${deltas} len=${deltaLength}]]`);
    const ms = Math.max(...(await Promise.all(readers.map(({ over }) => over)))) - start;
    for (const reader of readers) reader.close();
    const want = deltaTexts(deltas, deltaLength).join('');
    const counts = readers.map((reader) => checkedCount(reader.events(), want));
    const events = counts.reduce((sum, count) => sum + count, 0);
    return { ms, events, each: (ms * 1_000) / events };
  });
}

/** How many events there are; throws unless they are in order and hold the whole text. */
function checkedCount(events, want) {
  const ids = events.flatMap(({ id }) => (id === undefined ? [] : [id]));
  if (ids.some((id, at) => at > 0 && id !== ids[at - 1] + 1)) throw new Error('an event was lost');
  const updates = events.flatMap(({ type, data }) => (type === 'session_update' ? [data.update] : []));
  const chunks = updates.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
  const got = chunks.map(({ content }) => content.text).join('');
  if (got !== want) throw new Error(`a subscriber got ${got.length} characters, want ${want.length}`);
  return events.length;
}

async function loadOnce(bench, agent) {
  const transcript = transcriptOf(bench, DAEMON.records, true);
  const { sessionId } = transcript;
  place(qwenHomeOf(bench, agent), bench.cwd, transcript);
  return await withDaemon(bench, agent, async (daemon) => {
    await daemon.open(bench.cwd);
    await sleep(bench.options.settle);
    const start = performance.now();
    const path = `/session/${sessionId}/load`;
    const { ms: load, result } = await timed(() => daemon.call('POST', path, { cwd: bench.cwd }, LOADER));
    const asked = await daemon.waiting({ sessionId });
    const seconds = (performance.now() - start) / 1_000;
    const replayed = signaturesOf(result.compactedReplay.map(({ data }) => data.update));
    const fault = suffixDifference(replayed, transcript.open);
    if (fault) throw new Error(fault);
    const vote = await votedOn(bench, daemon, { sessionId, clientId: result.clientId }, asked);
    // Stopped earlier, the daemon would keep the answer for the next round, which asks the same.
    while ((await daemon.call('GET', `/session/${sessionId}/status`)).hasActivePrompt) await sleep(2);
    return { load, seconds, vote };
  });
}

/** Milliseconds that a vote takes; throws unless the answer reaches the model. */
async function votedOn(bench, daemon, session, asked) {
  const seen = bench.model.requests.length;
  const { ms } = await timed(() => daemon.answer(session, asked, ANSWER));
  const deadline = performance.now() + bench.options.timeout;
  while (performance.now() < deadline) {
    const told = bench.model.requests.slice(seen).find(({ kind }) => kind === 'toolDone');
    if (told?.result.includes(ANSWER)) return ms;
    await sleep(2);
  }
  throw new Error('the answer did not reach the model');
}

async function waitingOnce(bench, agent, count) {
  return await withDaemon(bench, agent, async (daemon) => {
    await daemon.open(bench.cwd);
    const empty = residentKb(daemon.pid);
    const sessions = await inParallel(Array.from({ length: count }), () => daemon.open(bench.cwd));
    const opened = residentKb(daemon.pid);
    await inParallel(sessions, (session) => daemon.prompt(session, ASK));
    const requests = await inParallel(sessions, (session) => daemon.waiting(session));
    const waiting = residentKb(daemon.pid);
    const step = Math.max(1, Math.floor(count / 200));
    const votes = [];
    for (let at = 0; at < count; at += step) {
      votes.push(await votedOn(bench, daemon, sessions[at], requests[at]));
    }
    const each = (before, after) => (after - before) / count;
    return { session: each(empty, opened), question: each(opened, waiting), vote: median(votes) };
  });
}

const residentKb = (pid) => +/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
