import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { LineCutter } from './mcp-lines.ts';
import { adoptGroup, buryGroup, LEADS_GROUP, signalGroup } from './process-group.ts';

export interface ServerProcess {
  readonly command: string;
  readonly args: readonly string[];
  /** All of it; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** One line of its stderr. */
  readonly onStderr: (line: string) => void;
  /** One line of its stdout that is no message. */
  readonly onNoise: (line: string) => void;
}

/** Of one message, in bytes. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;
const MAX_STDERR_LINE_BYTES = 4096;

/**
 * How long a server may take to leave, in ms: after the end of its stdin, after SIGTERM, after SIGKILL. Short, as a whole
 * child must be gone within two seconds.
 */
const LEAVE_MS = { eof: 200, term: 500, kill: 500 } as const;
/** What a dead server's pipes may still hold is read for so long, in ms; a process that escaped its group may keep them open. */
const DRAIN_MS = 200;

/**
 * An MCP server on the stdio of a process of its own, which leads a process group: nothing of the group outlives the
 * server's end. (The official transport neither makes a group nor is done in time.)
 */
export class ProcessTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: ServerProcess;
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ServerProcess) {
    this.#options = options;
  }

  /** Rejects when the program cannot be started. */
  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#options;
    // A pipe for stdout, never ours: that one carries the client's frames.
    const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], ...LEADS_GROUP });
    this.#child = child;
    if (child.pid !== undefined) adoptGroup(child.pid);
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    child.on('exit', () => this.#exited(child));
    child.on('close', () => this.onclose?.());
    this.#listen(child.stdout, child.stderr);
    await once(child, 'spawn');
  }

  /** Settles when the system has taken the message. */
  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable) return Promise.reject(new Error('the server takes no more messages'));
    return new Promise((resolve, reject) => {
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.stdin.end();
    if (await leavesWithin(child, LEAVE_MS.eof)) return;
    signalGroup(child.pid, 'SIGTERM');
    if (await leavesWithin(child, LEAVE_MS.term)) return;
    signalGroup(child.pid, 'SIGKILL');
    await leavesWithin(child, LEAVE_MS.kill);
  }

  #listen(stdout: Readable, stderr: Readable): void {
    const messages = new LineCutter(MAX_MESSAGE_BYTES, (line, isWhole) => this.#read(line, isWhole));
    stdout.on('data', (chunk: Buffer) => messages.push(chunk));
    // One that says nothing more is of no use, whether it lives or not.
    stdout.on('end', () => void this.close());
    const complaints = new LineCutter(MAX_STDERR_LINE_BYTES, (line) => this.#options.onStderr(line));
    stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
    stderr.on('end', () => complaints.end());
    for (const stream of [stdout, stderr]) stream.on('error', (error) => this.onerror?.(error));
  }

  #read(line: string, isWhole: boolean): void {
    if (!isWhole) {
      this.onerror?.(new Error(`a message of more than ${MAX_MESSAGE_BYTES} bytes`));
      void this.close();
      return;
    }
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      if (line.trim() !== '') this.#options.onNoise(line);
      return;
    }
    this.onmessage?.(message);
  }

  #exited(child: ChildProcessByStdio<Writable, Readable, Readable>): void {
    if (child.pid !== undefined) buryGroup(child.pid);
    void delay(DRAIN_MS, undefined, { ref: false }).then(() => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    });
  }
}

async function leavesWithin(child: ChildProcessByStdio<Writable, Readable, Readable>, ms: number): Promise<boolean> {
  const hasLeft = () => child.exitCode !== null || child.signalCode !== null;
  if (hasLeft()) return true;
  const done = new AbortController();
  // Both end by the abort at the latest, which is no news.
  const ways = [once(child, 'exit', { signal: done.signal }), delay(ms, undefined, { signal: done.signal })];
  await Promise.race(ways).catch(() => undefined);
  done.abort();
  await Promise.allSettled(ways);
  return hasLeft();
}
