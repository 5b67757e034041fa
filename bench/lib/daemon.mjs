// The client of an HTTP daemon: starts it, calls it, reads its events.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { serveCommand } from './agents.mjs';
import { killTree } from './proc.mjs';

const TURN_OVER = 'event: turn_complete';

/** Starts the agent's daemon and waits until it is healthy: `spawnedAt` and `healthyAt` in milliseconds. */
export async function startDaemon(bench, agent) {
  const { command, env } = serveCommand(bench, agent);
  const spawnedAt = performance.now();
  const child = spawn(command[0], command.slice(1), { cwd: bench.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr = (stderr + text).slice(-2_000);
  });
  const ended = exited.then((code) => Promise.reject(new Error(`the daemon ended (${code}): ${stderr}`)));
  ended.catch(() => {});
  const url = await Promise.race([listening(child.stdout), ended]);
  const daemon = new Daemon(url, child, exited, bench.options.timeout);
  await daemon.call('GET', '/health');
  return Object.assign(daemon, { spawnedAt, healthyAt: performance.now() });
}

function listening(stdout) {
  return new Promise((resolve) => {
    createInterface({ input: stdout }).on('line', (line) => {
      const found = /listening on (http\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
  });
}

class Daemon {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

  constructor(url, child, exited, timeout) {
    this.url = url;
    this.pid = child.pid;
    this.exited = exited;
    this.timeout = timeout;
  }

  /** The body of an answer that is no error. */
  call(method, path, body, clientId) {
    const headers = {
      ...(body && { 'content-type': 'application/json' }),
      ...(clientId && { 'x-qwen-client-id': clientId }),
    };
    const options = { method, headers, agent: this.#agent, timeout: this.timeout };
    return new Promise((resolve, reject) => {
      const request = http.request(this.url + path, options, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          if (response.statusCode >= 300) {
            reject(new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 200)}`));
          } else resolve(text === '' ? undefined : JSON.parse(text));
        });
      });
      request.on('timeout', () => request.destroy(new Error(`${method} ${path} was not answered`)));
      request.on('error', reject);
      request.end(body && JSON.stringify(body));
    });
  }

  /** A new session: `{sessionId, clientId}`. */
  open(cwd) {
    return this.call('POST', '/session', { cwd, sessionScope: 'thread' });
  }

  prompt({ sessionId, clientId }, text) {
    return this.call('POST', `/session/${sessionId}/prompt`, { prompt: [{ type: 'text', text }] }, clientId);
  }

  /** The first request that waits in the session, asking again and again. */
  async waiting({ sessionId }) {
    const deadline = performance.now() + this.timeout;
    while (performance.now() < deadline) {
      const { pendingInteractions } = await this.call('GET', `/session/${sessionId}/status`);
      if (pendingInteractions.length > 0) return pendingInteractions[0];
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new Error('the question never waited');
  }

  answer({ sessionId, clientId }, { requestId, options }, answer) {
    const { optionId } = options.find(({ kind }) => kind.startsWith('allow'));
    const body = { outcome: { outcome: 'selected', optionId }, answers: { 0: answer } };
    return this.call('POST', `/session/${sessionId}/permission/${requestId}`, body, clientId);
  }

  /**
   * Subscribes to a session: resolves when the stream is open. `over` resolves with the time at which the turn was seen to
   * be over, and rejects when the subscriber is cut off before; `events()` parses what came.
   */
  subscribe({ sessionId }) {
    return new Promise((opened, reject) => {
      const request = http.get(`${this.url}/session/${sessionId}/events`, { agent: false }, (response) => {
        const chunks = [];
        let tail = '';
        const over = new Promise((resolve, cutOff) => {
          response.on('data', (chunk) => {
            chunks.push(chunk);
            // Nothing is parsed while the clock runs.
            const text = tail + chunk.latin1Slice();
            tail = text.slice(-TURN_OVER.length);
            if (text.includes(TURN_OVER)) resolve(performance.now());
          });
          response.on('end', () => cutOff(new Error('a subscriber was cut off')));
          response.on('error', cutOff);
        });
        over.catch(() => {});
        opened({ over, events: () => parsedEvents(chunks), close: () => request.destroy() });
      });
      request.on('error', reject);
    });
  }

  /** As a crash would: the daemon and its agent process at once. */
  async crash() {
    killTree(this.pid);
    await this.#gone();
  }

  async stop() {
    process.kill(this.pid, 'SIGTERM');
    await this.#gone();
  }

  async #gone() {
    await this.exited;
    this.#agent.destroy();
  }
}

function parsedEvents(chunks) {
  const blocks = Buffer.concat(chunks).toString('utf8').split('\n\n');
  return blocks.flatMap((block) => {
    const data = /^data: (.*)$/m.exec(block);
    return data ? [JSON.parse(data[1])] : [];
  });
}

/** Does the work for each item, 32 at a time; the results in order. */
export async function inParallel(items, work) {
  const results = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return results;
}
