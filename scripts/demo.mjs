// Plays the main job with real processes and the scripted model: a question is asked, the agent dies, the question is
// asked again under a new id, and the answer goes on with the same turn. Fails loudly when a step is not as it should be.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { playOverHttp } from './demo-http.mjs';

const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../demo/script.json', import.meta.url));
const RESTORE = 'qwen.daemon.restoreAskUserQuestion';
const root = mkdtempSync(join(tmpdir(), 'qwen-acp-demo-'));
const say = (text = '') => console.log(text);

/** One agent process and a plain ACP client on its pipes. */
class Agent {
  constructor() {
    this.questions = [];
    this.said = '';
    this.cards = new Map();
    this.child = spawn(
      process.execPath,
      [CLI, '--acp', '--restore-ask-user-question', '--auth-type', 'scripted', '--script', SCRIPT],
      { cwd: root, env: { ...process.env, QWEN_HOME: join(root, 'home') }, stdio: ['pipe', 'pipe', 'inherit'] },
    );
    this.exited = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve({ code, signal })));
    this.child.stdin.on('error', () => {});
    const stream = ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    this.connection = client()
      .onNotification(methods.client.session.update, ({ params }) => this.#update(params.update))
      .onRequest(methods.client.session.requestPermission, ({ params, requestId }) => this.#ask(params, requestId))
      .connect(this.#tapped(stream));
  }

  request(method, params) {
    return this.connection.agent.request(method, params);
  }

  /** The next question that the agent asks; `answer` replies to it. */
  async question() {
    while (this.questions.length === 0) await new Promise((resolve) => (this.arrived = resolve));
    return this.questions.shift();
  }

  async kill(signal) {
    this.child.kill(signal);
    return await this.exited;
  }

  #tapped({ readable, writable }) {
    const ids = new TransformStream({
      transform: (message, controller) => {
        if (message.method === 'session/request_permission') this.lastId = message.id;
        controller.enqueue(message);
      },
    });
    return { writable, readable: readable.pipeThrough(ids) };
  }

  #update(update) {
    if (update.sessionUpdate === 'agent_message_chunk') this.said += update.content.text;
    if (update.toolCallId) this.cards.set(update.toolCallId, update.status);
  }

  #ask(params) {
    return new Promise((answer) => {
      this.questions.push({ id: this.lastId, ...params, answer });
      this.arrived?.();
    });
  }
}

const cwd = root;
const initialize = { protocolVersion: 1, clientInfo: { name: 'demo', version: '1' }, clientCapabilities: {} };
const transcript = (sessionId) =>
  readFileSync(join(root, 'home', 'projects', cwd.replace(/[^A-Za-z0-9]/g, '-'), 'chats', `${sessionId}.jsonl`), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

function show(question) {
  const [{ question: text, options }] = question.toolCall.rawInput.questions;
  say(`   agent asks  "${text}" (${options.map(({ label }) => label).join(' or ')})`);
  say(`               request id ${question.id}, tool call ${question.toolCall.toolCallId}`);
}

async function askAndLose(how, lose) {
  const agent = new Agent();
  await agent.request(methods.agent.initialize, initialize);
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  say(`   you write   "Set up storage for the service."   (session ${sessionId})`);
  const prompt = [{ type: 'text', text: 'Set up storage for the service.' }];
  const turn = agent.request(methods.agent.session.prompt, { sessionId, prompt }).catch(() => 'lost with the process');
  const question = await agent.question();
  show(question);
  say(`   ${how}`);
  const end = await lose(agent);
  await turn;
  const last = transcript(sessionId).findLast(({ type }) => type !== 'system');
  assert.equal(last.type, 'assistant', 'nothing but the question may be at the end of the transcript');
  say('               the transcript ends with the open question, nobody answered in your name');
  return { sessionId, question, end };
}

async function loadAndAnswer({ sessionId, question: first }, label) {
  const agent = new Agent();
  await agent.request(methods.agent.initialize, initialize);
  const loaded = await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  assert.equal(loaded._meta?.[RESTORE], true, 'the load must say that a question can be asked again');
  assert.equal(agent.cards.get(first.toolCall.toolCallId), 'in_progress', 'the card of the question must be open');
  say('   new process loads the session: the history is there, the card of the question is still open');
  const turn = agent.request(methods.agent.session.prompt, { sessionId, prompt: [], _meta: { [RESTORE]: true } });
  const again = await agent.question();
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
  const records = transcript(sessionId);
  const responses = records.flatMap(({ message }) => message?.parts ?? []).filter((part) => part.functionResponse);
  assert.equal(responses.length, 1, 'the call must have exactly one response');
  assert.match(responses[0].functionResponse.response.output, new RegExp(label));
  assert.equal(records.filter(({ type }) => type === 'user').length, 1, 'it must be the same turn, no new message');
  say('   the same turn ended with the real answer: one user message, one question, one response');
  agent.child.stdin.end();
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
}

const deadline = setTimeout(() => {
  console.error('The demo did not end within 20 seconds.');
  process.exit(1);
}, 20_000);
try {
  say('A question to you, and what happens to it when the agent dies.\n');
  say('1. The process is killed while it waits for you (kill -9).');
  const killed = await askAndLose('kill -9     the agent is gone', (agent) => agent.kill('SIGKILL'));
  assert.deepEqual(killed.end, { code: null, signal: 'SIGKILL' });
  await loadAndAnswer(killed, 'Postgres');
  say('\n2. Somebody deploys: the process is told to stop while it waits for you (SIGTERM).');
  const stopped = await askAndLose('SIGTERM     the agent stops cleanly', (agent) => agent.kill('SIGTERM'));
  assert.deepEqual(stopped.end, { code: 0, signal: null }, 'a clean stop exits with code 0');
  await loadAndAnswer(stopped, 'SQLite');
  say('\n3. Over HTTP: the daemon is killed, the next one is stopped, the third gets your answer.');
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
