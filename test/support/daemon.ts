import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { Home, RECORDED_SCRIPT } from './peer.ts';
import { tempFolder } from './temp.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: a test looks at bodies and events of every form
type Json = any;

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed where it is JSON, else the text. */
  readonly body: Json;
}

export interface DaemonPlace {
  readonly home: Home;
  /** The workspace, which the daemon starts in. */
  readonly cwd: string;
}

/** A home and a workspace for daemons that run one after the other. */
export function daemonPlace(): DaemonPlace {
  const home = new Home();
  const cwd = join(realpathSync(tempFolder()), 'project');
  mkdirSync(cwd);
  return { home, cwd };
}

export interface DaemonStart {
  readonly place?: DaemonPlace;
  /** The switch; on unless set. */
  readonly restore?: boolean;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly script?: object;
}

/** A real `qwen-acp serve` with its real child, on a free port. Ended with the test. */
export class Daemon {
  readonly place: DaemonPlace;
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  stdout = '';
  stderr = '';
  url = '';

  private constructor(options: DaemonStart) {
    this.place = options.place ?? daemonPlace();
    const { home, cwd } = this.place;
    const folder = tempFolder({ 'script.json': JSON.stringify(options.script ?? RECORDED_SCRIPT) });
    const args = ['serve', '--port', '0', '--script', join(folder, 'script.json'), ...(options.args ?? [])];
    if (options.restore !== false) args.push('--restore-ask-user-question');
    this.process = spawn(process.execPath, [CLI, ...args], {
      cwd,
      env: { PATH: process.env['PATH'], HOME: home.path, QWEN_HOME: home.path, ...options.env },
    });
    this.exited = once(this.process, 'exit').then(([code, signal]) => ({ code, signal }));
    this.process.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    onTestFinished(async () => {
      this.process.kill('SIGKILL');
      await this.exited;
    });
  }

  /** Starts one and waits until it listens. */
  static async start(options: DaemonStart = {}): Promise<Daemon> {
    const daemon = new Daemon(options);
    const listening = new Promise<void>((resolve) => {
      daemon.process.stdout.on('data', () => {
        daemon.url = /http:\/\/\S+/.exec(daemon.stdout)?.[0] ?? '';
        if (daemon.url !== '') resolve();
      });
    });
    const failed = daemon.exited.then(({ code }) => {
      throw new Error(`the daemon ended with ${code}: ${daemon.stderr}`);
    });
    failed.catch(() => {});
    await Promise.race([listening, failed]);
    return daemon;
  }

  /** Sends a body as JSON; a text as it stands. */
  request(method: string, path: string, body?: unknown, headers: OutgoingHttpHeaders = {}): Promise<HttpAnswer> {
    return send(`${this.url}${path}`, method, body, headers);
  }

  get(path: string, headers: OutgoingHttpHeaders = {}): Promise<HttpAnswer> {
    return this.request('GET', path, undefined, headers);
  }

  post(path: string, body?: unknown, clientId?: string): Promise<HttpAnswer> {
    return this.request('POST', path, body, clientId === undefined ? {} : { 'x-qwen-client-id': clientId });
  }

  /** Subscribes to a session's events. */
  events(sessionId: string, headers: OutgoingHttpHeaders = {}, query = ''): Promise<EventReader> {
    return EventReader.open(`${this.url}/session/${sessionId}/events${query}`, headers);
  }

  /** Starts a session and has it ask; resolves when the question waits. */
  async ask(text = '[[ask1]] hi'): Promise<Question> {
    const { body: session } = await this.post('/session', { sessionScope: 'thread' });
    const events = await this.events(session.sessionId);
    await this.post(`/session/${session.sessionId}/prompt`, { prompt: [{ type: 'text', text }] }, session.clientId);
    const { data } = await events.next('permission_request');
    return { sessionId: session.sessionId, clientId: session.clientId, requestId: data.requestId, events };
  }

  /** The records of a session's transcript. */
  records(sessionId: string): Json[] {
    const lines = readFileSync(this.place.home.file(sessionId, this.place.cwd), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL') {
    this.process.kill(signal);
    return await this.exited;
  }
}

export interface Question {
  readonly sessionId: string;
  readonly clientId: string;
  readonly requestId: string;
  readonly events: EventReader;
}

/** One request on a connection of its own. */
export async function send(
  url: string,
  method: string,
  body?: unknown,
  headers: OutgoingHttpHeaders = {},
): Promise<HttpAnswer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const type = body === undefined || typeof body === 'string' ? {} : { 'content-type': 'application/json' };
  const request = httpRequest(url, { method, agent: false, headers: { ...type, ...headers } });
  const response = await new Promise<Json>((resolve, reject) => {
    let failure: unknown;
    request.on('response', resolve);
    // An answer may come before all of a body is sent, and the connection end with it.
    request.on('error', (error) => {
      failure = error;
    });
    request.on('close', () => reject(failure));
    request.end(text);
  });
  let answer = '';
  for await (const chunk of response.setEncoding('utf8')) answer += chunk;
  const json = /json/.test(response.headers['content-type'] ?? '');
  return { status: response.statusCode, headers: response.headers, body: json ? JSON.parse(answer) : answer };
}

/** What a subscriber gets, in order. */
export class EventReader {
  /** Every event so far. */
  readonly seen: Json[] = [];
  /** Every line, comments and `retry` included. */
  text = '';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Resolves when the stream is over, however it ended. */
  readonly ended: Promise<void>;
  readonly #request: ReturnType<typeof httpRequest>;
  readonly #watching = new Set<() => void>();
  #taken = 0;
  #over = false;

  static async open(url: string, headers: OutgoingHttpHeaders = {}): Promise<EventReader> {
    const request = httpRequest(url, { agent: false, headers: { accept: 'text/event-stream', ...headers } });
    request.on('error', () => {});
    request.end();
    const [response] = await once(request, 'response');
    return new EventReader(request, response);
  }

  private constructor(request: ReturnType<typeof httpRequest>, response: Json) {
    this.#request = request;
    this.status = response.statusCode;
    this.headers = response.headers;
    this.ended = this.#read(response).catch(() => {});
  }

  /** The next event of this type after the last one taken; events before it are passed over. */
  async next(type: string): Promise<Json> {
    return await this.until((event) => event.type === type);
  }

  async until(is: (event: Json) => boolean): Promise<Json> {
    for (;;) {
      const index = this.seen.findIndex((event, at) => at >= this.#taken && is(event));
      if (index >= 0) {
        this.#taken = index + 1;
        return this.seen[index];
      }
      if (this.#over) throw new Error(`the events ended: ${this.seen.map(({ type }) => type).join(' ')}`);
      await new Promise<void>((resolve) => {
        const look = () => {
          this.#watching.delete(look);
          resolve();
        };
        this.#watching.add(look);
      });
    }
  }

  close(): void {
    this.#request.destroy();
  }

  async #read(response: AsyncIterable<string> & { setEncoding(encoding: string): unknown }): Promise<void> {
    response.setEncoding('utf8');
    let rest = '';
    try {
      for await (const chunk of response) {
        this.text += chunk;
        rest += chunk;
        const blocks = rest.split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          const data = /^data: (.*)$/m.exec(block)?.[1];
          if (data !== undefined) this.seen.push(JSON.parse(data));
        }
        for (const look of this.#watching) look();
      }
    } finally {
      this.#over = true;
      for (const look of this.#watching) look();
    }
  }
}
