// What a daemon carries: questions that wait, and votes that come fast. Prints figures and fails when an answer is lost or a
// bar is missed (PF-6 of the design; the bench measures it with fewer votes).
//
//   npm run load -- [--questions N] [--rate votes per second]
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childrenOf, createPlace, removePlace, startDaemon } from './crash-daemon.mjs';

const ENTRY = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const QUESTION = {
  question: 'Which colour should the new page have?',
  header: 'Colour',
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
};
const SCRIPT = {
  rules: [
    { when: { response: 'ask_user_question' }, steps: [{ text: 'So be it.' }] },
    { steps: [{ call: 'ask_user_question', args: { questions: [QUESTION] } }] },
  ],
};
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
const option = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at === -1 ? otherwise : Number(process.argv[at + 1]);
};

const place = createPlace(SCRIPT);
const daemon = await startDaemon(place, ENTRY, { args: ['--max-sessions', '100000'] });
const failures = [];
async function openSessions(count) {
  await call('POST', '/session', { cwd: place.cwd, sessionScope: 'thread' });
  const before = memoryKb();
  const sessions = await inParallel(Array.from({ length: count }), async () => {
    const { sessionId, clientId } = await call('POST', '/session', { cwd: place.cwd, sessionScope: 'thread' });
    return { sessionId, clientId };
  });
  print('sessions', `${count}, ${((memoryKb() - before) / count).toFixed(1)} KB each in the daemon`);
  return sessions;
}

async function askAll(sessions) {
  const before = memoryKb();
  await inParallel(sessions, ({ sessionId, clientId }) =>
    call('POST', `/session/${sessionId}/prompt`, { prompt: [{ type: 'text', text: 'ask' }] }, clientId),
  );
  const requests = await inParallel(sessions, async ({ sessionId }) => {
    while (true) {
      const { pendingInteractions } = await call('GET', `/session/${sessionId}/status`);
      if (pendingInteractions.length > 0) return pendingInteractions[0].requestId;
      await delay(20);
    }
  });
  const each = (memoryKb() - before) / sessions.length;
  print('waiting questions', `${sessions.length}, ${each.toFixed(1)} KB each in the daemon (bar: 20)`);
  print('memory', `daemon ${mb(daemon.pid)} MB, agent process ${mb(childrenOf(daemon.pid)[0])} MB`);
  if (each > 20) failures.push(`a waiting question costs ${each.toFixed(1)} KB`);
  return requests;
}

async function voteOneByOne(sessions, requests, count) {
  const latencies = [];
  const step = Math.floor(sessions.length / count);
  for (let index = 0; index < count; index++) {
    const started = performance.now();
    await vote(sessions[index * step], requests[index * step]);
    latencies.push(performance.now() - started);
    sessions[index * step].voted = true;
  }
  const { median, p99 } = quantiles(latencies);
  print('a vote among them', `median ${median.toFixed(1)} ms, 99 % ${p99.toFixed(1)} ms (bar: median 10)`);
  if (median > 10) failures.push(`a vote takes ${median.toFixed(1)} ms at the median`);
}

/** Sends votes when they are due, whether or not those before are answered. */
async function voteAt(rate, sessions, requests) {
  const rest = sessions.flatMap((session, index) => (session.voted ? [] : [[session, requests[index]]]));
  const latencies = [];
  const sent = [];
  const started = performance.now();
  while (sent.length < rest.length) {
    const due = Math.min(rest.length, Math.floor(((performance.now() - started) / 1000) * rate));
    while (sent.length < due) {
      const at = performance.now();
      sent.push(vote(...rest[sent.length]).then(() => latencies.push(performance.now() - at)));
    }
    await delay(1);
  }
  const sending = (performance.now() - started) / 1000;
  await Promise.all(sent);
  const all = (performance.now() - started) / 1000;
  const { median, p99 } = quantiles(latencies);
  print(
    `${rate} votes/s`,
    `${latencies.length} sent in ${sending.toFixed(1)} s, all accepted after ${all.toFixed(1)} s, ` +
      `median ${median.toFixed(1)} ms, 99 % ${p99.toFixed(1)} ms`,
  );
}

async function everyAnswerIsThere(sessions) {
  const started = performance.now();
  const chats = join(place.home, 'projects', place.cwd.replace(/[^A-Za-z0-9]/g, '-'), 'chats');
  for (const { sessionId } of sessions) {
    while ((await call('GET', `/session/${sessionId}/status`)).hasActivePrompt) await delay(20);
    const records = readFileSync(join(chats, `${sessionId}.jsonl`), 'utf8')
      .trim()
      .split('\n')
      .map((l) => JSON.parse(l));
    const responses = records.flatMap(({ message }) => message?.parts ?? []).filter((part) => part.functionResponse);
    if (responses.length !== 1 || !JSON.stringify(responses).includes('Blue')) {
      throw new Error(`session ${sessionId} has lost its answer: ${JSON.stringify(responses)}`);
    }
  }
  print('lost', `0 of ${sessions.length} answers; the last turn ended ${seconds(started)} s after the last vote`);
}

const vote = ({ sessionId, clientId }, requestId) =>
  call(
    'POST',
    `/session/${sessionId}/permission/${requestId}`,
    { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Blue' } },
    clientId,
  );

/** The body of an answer that is no error. */
function call(method, path, body, clientId) {
  const headers = {
    ...(body && { 'content-type': 'application/json' }),
    ...(clientId && { 'x-qwen-client-id': clientId }),
  };
  return new Promise((resolve, reject) => {
    const req = request(`${daemon.url}${path}`, { method, agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => {
        if (response.statusCode >= 300) reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        else resolve(text === '' ? undefined : JSON.parse(text));
      });
    });
    req.on('error', reject);
    req.end(body && JSON.stringify(body));
  });
}

async function inParallel(items, work) {
  const results = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return results;
}

function quantiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)], p99: sorted[Math.floor(sorted.length * 0.99)] };
}

function memoryKb(pid = daemon.pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

function mb(pid) {
  return Math.round(memoryKb(pid) / 1024);
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1);
}

function print(name, text) {
  console.log(`${name.padEnd(20)}${text}`);
}

try {
  const sessions = await openSessions(option('--questions', 10_000));
  const requests = await askAll(sessions);
  await voteOneByOne(sessions, requests, Math.min(500, Math.floor(sessions.length / 10)));
  await voteAt(option('--rate', 1_000), sessions, requests);
  await everyAnswerIsThere(sessions);
} catch (error) {
  failures.push(`${error.message}\n${daemon.stderr()}`);
} finally {
  process.kill(daemon.pid, 'SIGTERM');
  await daemon.exited;
  removePlace(place);
}
for (const failure of failures) console.error(`FAILED: ${failure}`);
process.exitCode = failures.length === 0 ? 0 : 1;
