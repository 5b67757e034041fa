// A minimal ACP client (one JSON-RPC message a line over stdio) for timing. While the clock runs it does the least it
// can: session/update lines are kept raw, and parsed and checked only afterwards.
import { spawn } from 'node:child_process';
import { killTree, usage } from './proc.mjs';

export const INITIALIZE = {
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  clientInfo: { name: 'acp-bench', version: '1' },
};

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const UPDATE = Buffer.from('session/update');
const COMMANDS = Buffer.from('available_commands_update');
const NEWLINE = 10;

export class AcpClient {
  /**
   * Spawns `command`. `onRequest(message, receivedAt)` answers the agent's requests: a result, undefined (method not
   * found) or null (never answered).
   */
  constructor(command, { env = {}, cwd, onRequest = () => undefined } = {}) {
    this.spawnedAt = performance.now();
    this.child = spawn(command[0], command.slice(1), { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.pid = this.child.pid;
    this.onRequest = onRequest;
    this.onUpdate = undefined;
    this.nextId = 1;
    this.pending = new Map();
    this.updates = [];
    this.firstUpdateAt = 0;
    this.junk = [];
    this.stderr = '';
    this.partial = [];
    this.child.stdout.on('data', (chunk) => this.feed(chunk));
    this.child.stderr.on('data', (chunk) => {
      if (this.stderr.length < 20_000) this.stderr += chunk;
    });
    this.child.stdin.on('error', () => {});
    this.child.on('error', (error) => this.abandon(error));
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        this.abandon(new Error(`agent exited ${code ?? signal}; stderr: ${this.stderr.slice(0, 800)}`));
        resolve();
      });
    });
  }

  /** Fails what waits, and all that is asked from now on. */
  abandon(error) {
    this.failure ??= error;
    for (const request of this.pending.values()) request.reject(error);
    this.pending.clear();
  }

  feed(chunk) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      let line = chunk.subarray(from, end);
      from = end + 1;
      if (this.partial.length) {
        this.partial.push(line);
        line = Buffer.concat(this.partial);
        this.partial = [];
      }
      if (line.length) this.receive(line);
    }
    if (from < chunk.length) this.partial.push(from ? chunk.subarray(from) : chunk);
  }

  receive(line) {
    if (line.subarray(0, 160).indexOf(UPDATE) !== -1) return this.keepUpdate(line);
    let message;
    try {
      message = JSON.parse(line.toString('utf8'));
    } catch {
      this.junk.push(line.toString('utf8').slice(0, 200));
      return;
    }
    if (message.method === 'session/update') this.keepUpdate(line);
    else if (message.method === undefined) this.settle(message, line.length + 1);
    else if (message.id !== undefined) this.answer(message).catch((error) => this.abandon(error));
  }

  keepUpdate(line) {
    // The command list is no part of a replay: sent first, it would make any load look prompt.
    if (!this.firstUpdateAt && line.indexOf(COMMANDS) === -1) this.firstUpdateAt = performance.now();
    this.updates.push(line);
    this.onUpdate?.(line);
  }

  async answer(message) {
    const result = await this.onRequest(message, performance.now());
    if (result === null) return;
    if (result !== undefined) this.send({ jsonrpc: '2.0', id: message.id, result });
    else this.send({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } });
  }

  settle(message, bytes) {
    const request = this.pending.get(message.id);
    if (!request) {
      this.junk.push(`unsolicited response ${JSON.stringify(message).slice(0, 200)}`);
      return;
    }
    this.pending.delete(message.id);
    const at = performance.now();
    if (message.jsonrpc !== '2.0') request.reject(new Error('response without jsonrpc 2.0'));
    else if (message.error) request.reject(rpcError(request.method, message.error));
    else request.resolve({ result: message.result, ms: at - request.sentAt, at, bytes });
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Sends a request; resolves with `{result, ms, at, bytes}`, `at` being the moment its whole line was read. */
  async request(method, params, timeoutMs = 120_000) {
    if (this.failure) throw this.failure;
    const id = this.nextId++;
    let timer;
    const answered = new Promise((resolve, reject) => {
      this.pending.set(id, { method, sentAt: performance.now(), resolve, reject });
      timer = setTimeout(() => {
        this.pending.delete(id);
        reject(new Error(`${method}: no answer in ${timeoutMs} ms; stderr: ${this.stderr.slice(0, 500)}`));
      }, timeoutMs);
      this.send({ jsonrpc: '2.0', id, method, params });
    });
    try {
      return await answered;
    } finally {
      clearTimeout(timer);
    }
  }

  usage() {
    return usage(this.pid);
  }

  /** The raw update lines since the last call. */
  takeUpdates() {
    const lines = this.updates;
    this.updates = [];
    this.firstUpdateAt = 0;
    return lines;
  }

  /** Closes stdin and waits, so that whatever the agent does at a clean end (a compile cache, a CPU profile) is done. */
  async end() {
    this.child.stdin.end();
    await Promise.race([this.exited, sleep(4_000)]);
    await this.kill();
  }

  async kill() {
    killTree(this.pid);
    await Promise.race([this.exited, sleep(2_000)]);
  }
}

function rpcError(method, { code, message, data }) {
  return new Error(`${method}: ${code} ${message} ${JSON.stringify(data ?? '')}`.slice(0, 600));
}
