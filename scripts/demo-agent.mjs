// One agent process of the demo, and a plain ACP client on its pipes.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';

export const RESTORE = 'qwen.daemon.restoreAskUserQuestion';
const INITIALIZE = { protocolVersion: 1, clientInfo: { name: 'demo', version: '1' }, clientCapabilities: {} };

export class Agent {
  /** `root` is its folder, and has its sessions below `home`. */
  constructor({ cli, script, root }) {
    this.root = root;
    this.requests = [];
    this.said = '';
    this.cards = new Map();
    this.child = spawn(
      process.execPath,
      [cli, '--acp', '--restore-ask-user-question', '--auth-type', 'scripted', '--script', script],
      {
        cwd: root,
        env: { ...process.env, QWEN_HOME: join(root, 'home'), QWEN_RUNTIME_DIR: undefined },
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    this.exited = new Promise((resolve) => this.child.on('exit', (code, signal) => resolve({ code, signal })));
    this.child.stdin.on('error', () => {});
    const stream = ndJsonStream(Writable.toWeb(this.child.stdin), Readable.toWeb(this.child.stdout));
    this.connection = client()
      .onNotification(methods.client.session.update, ({ params }) => this.#update(params.update))
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#ask(params))
      .connect(this.#tapped(stream));
  }

  async initialize() {
    await this.#request(methods.agent.initialize, INITIALIZE);
    return this;
  }

  newSession() {
    return this.#request(methods.agent.session.new, { cwd: this.root, mcpServers: [] });
  }

  load(sessionId) {
    return this.#request(methods.agent.session.load, { sessionId, cwd: this.root, mcpServers: [] });
  }

  prompt(sessionId, text) {
    return this.#request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  /** Goes on with the turn whose question was open when its process died. */
  goOn(sessionId) {
    return this.#request(methods.agent.session.prompt, { sessionId, prompt: [], _meta: { [RESTORE]: true } });
  }

  /** The next permission request, be it a question or a change; `answer` replies to it. */
  async asked() {
    while (this.requests.length === 0) await new Promise((resolve) => (this.arrived = resolve));
    return this.requests.shift();
  }

  async kill(signal) {
    this.child.kill(signal);
    return await this.exited;
  }

  async end() {
    this.child.stdin.end();
    return await this.exited;
  }

  #request(method, params) {
    return this.connection.agent.request(method, params);
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
    if (update.toolCallId) this.cards.set(update.toolCallId, { ...this.cards.get(update.toolCallId), ...update });
  }

  #ask(params) {
    return new Promise((answer) => {
      this.requests.push({ id: this.lastId, ...params, answer });
      this.arrived?.();
    });
  }
}

/** The records of a session on disk. */
export const transcript = (root, sessionId) =>
  readFileSync(
    join(root, 'home', 'projects', root.replace(/[^A-Za-z0-9]/g, '-'), 'chats', `${sessionId}.jsonl`),
    'utf8',
  )
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** The responses to a session's calls, in order. */
export const responsesOf = (records) =>
  records.flatMap(({ message }) => message?.parts ?? []).flatMap((part) => part.functionResponse ?? []);
