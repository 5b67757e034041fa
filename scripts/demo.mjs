// Plays the main job with real processes and the scripted model: a question is asked, the agent dies, the question is
// asked again under a new id, and the answer goes on with the same turn. Fails loudly when a step is not as it should be.
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, RESTORE, responsesOf, transcript } from './demo-agent.mjs';
import { playOverHttp } from './demo-http.mjs';
import { playWork } from './demo-work.mjs';

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const CLI = fileOf('../dist/cli.js');
const SCRIPT = fileOf('../demo/script.json');
const DEADLINE_MS = 60_000;
const root = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-acp-demo-')));
const say = (text = '') => console.log(text);
const start = () => new Agent({ cli: CLI, script: SCRIPT, root }).initialize();

function show(question) {
  const [{ question: text, options }] = question.toolCall.rawInput.questions;
  say(`   agent asks  "${text}" (${options.map(({ label }) => label).join(' or ')})`);
  say(`               request id ${question.id}, tool call ${question.toolCall.toolCallId}`);
}

async function askAndLose(how, signal) {
  const agent = await start();
  const { sessionId } = await agent.newSession();
  say(`   you write   "Set up storage for the service."   (session ${sessionId})`);
  const turn = agent.prompt(sessionId, 'Set up storage for the service.').catch(() => 'lost with the process');
  const question = await agent.asked();
  show(question);
  say(`   ${how}`);
  const end = await agent.kill(signal);
  await turn;
  const last = transcript(root, sessionId).findLast(({ type }) => type !== 'system');
  assert.equal(last.type, 'assistant', 'nothing but the question may be at the end of the transcript');
  say('               the transcript ends with the open question, nobody answered in your name');
  return { sessionId, question, end };
}

async function loadAndAnswer({ sessionId, question: first }, label) {
  const agent = await start();
  const loaded = await agent.load(sessionId);
  assert.equal(loaded._meta?.[RESTORE], true, 'the load must say that a question can be asked again');
  const card = agent.cards.get(first.toolCall.toolCallId);
  assert.equal(card.status, 'in_progress', 'the card of the question must be open');
  say('   a new process loads the session: the history is there, the card of the question is still open');
  const turn = agent.goOn(sessionId);
  const again = await agent.asked();
  show(again);
  assert.notEqual(again.id, first.id, 'the question must come under a new request id');
  assert.equal(again.toolCall.toolCallId, first.toolCall.toolCallId, 'it must be the same tool call');
  agent.said = '';
  say(`   you answer  "${label}"`);
  again.answer({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: label } });
  const { stopReason } = await turn;
  assert.equal(stopReason, 'end_turn');
  assert.match(agent.said, new RegExp(label), 'the answer must have reached the model');
  say(`   agent says  ${JSON.stringify(agent.said)}`);
  const records = transcript(root, sessionId);
  const responses = responsesOf(records);
  assert.equal(responses.length, 1, 'the call must have exactly one response');
  assert.match(responses[0].response.output, new RegExp(label));
  assert.equal(records.filter(({ type }) => type === 'user').length, 1, 'it must be the same turn, no new message');
  say('   the same turn ended with the real answer: one user message, one question, one response');
  assert.deepEqual(await agent.end(), { code: 0, signal: null });
}

const deadline = setTimeout(() => {
  console.error(`The demo did not end within ${DEADLINE_MS / 1000} seconds.`);
  process.exit(1);
}, DEADLINE_MS);
try {
  say('A question to you, and what happens to it when the agent dies.\n');
  say('1. The process is killed while it waits for you (kill -9).');
  const killed = await askAndLose('kill -9     the agent is gone', 'SIGKILL');
  assert.deepEqual(killed.end, { code: null, signal: 'SIGKILL' });
  await loadAndAnswer(killed, 'Postgres');
  say('\n2. Somebody deploys: the process is told to stop while it waits for you (SIGTERM).');
  const stopped = await askAndLose('SIGTERM     the agent stops cleanly', 'SIGTERM');
  assert.deepEqual(stopped.end, { code: 0, signal: null }, 'a clean stop exits with code 0');
  await loadAndAnswer(stopped, 'SQLite');
  say('\n3. In the middle of work: it changes a file as you allow it, asks, is killed, and goes on.');
  await playWork({ cli: CLI, script: fileOf('../demo/work.json'), root, say });
  say('\n4. Over HTTP: the daemon is killed, the next one is stopped, the third gets your answer.');
  await playOverHttp({ cli: CLI, script: SCRIPT, root, say });
  say('\nEvery question survived. That is what qwen-acp is for.');
} catch (error) {
  console.error('\nThe demo failed:', error);
  process.exitCode = 1;
} finally {
  clearTimeout(deadline);
  rmSync(root, { recursive: true, force: true });
}
process.exit();
