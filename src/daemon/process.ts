import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

export interface ChildCommand {
  /** Absolute path of the script that speaks ACP on its stdio. */
  readonly script: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Takes each line of its stderr, with a prefix that names the child and without the line feed. */
  readonly onStderr: (line: string) => void;
}

/** How long each way of ending a child is given before the next, harder one, in milliseconds. */
const GRACE_AFTER_EOF_MS = 1_500;
const GRACE_AFTER_SIGTERM_MS = 1_000;
/** What a child writes to stderr without a line feed is cut here, in characters. */
const MAX_STDERR_LINE = 8_192;

/** A child in a process group of its own: what it starts ends with it, and a terminal's Ctrl-C reaches the daemon alone. */
export class ChildHost {
  readonly input: Writable;
  readonly output: Readable;
  /** Resolves when the process is gone; never rejects. Says how it went, for a log. */
  readonly exited: Promise<string>;
  readonly #process: ChildProcess;
  #ending: Promise<void> | undefined;

  constructor(command: ChildCommand) {
    const child = spawn(process.execPath, [command.script, ...command.args], {
      cwd: command.cwd,
      env: command.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#process = child;
    this.input = child.stdin;
    this.output = child.stdout;
    this.exited = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    // The connection sees it, too; without a listener here it would be thrown.
    child.stdin.on('error', () => {});
    forwardLines(child.stderr, (line) => command.onStderr(`[serve pid=${child.pid} cwd=${command.cwd}] ${line}`));
  }

  /** Lets the child stop by itself, then makes it. `closeInput` is how its input is ended after what still goes out. */
  end(closeInput: () => void): Promise<void> {
    this.#ending ??= this.#end(closeInput);
    return this.#ending;
  }

  async #end(closeInput: () => void): Promise<void> {
    closeInput();
    if (await this.#goneWithin(GRACE_AFTER_EOF_MS)) return this.#sweep();
    this.#process.kill('SIGTERM');
    if (await this.#goneWithin(GRACE_AFTER_SIGTERM_MS)) return this.#sweep();
    this.#sweep();
    await this.exited;
  }

  /** Ends whatever of the child's group is left. */
  #sweep(): void {
    const { pid } = this.#process;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The group is empty.
    }
  }

  async #goneWithin(milliseconds: number): Promise<boolean> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), milliseconds);
    try {
      return await Promise.race([this.exited.then(() => true), once(deadline.signal, 'abort').then(() => false)]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function forwardLines(stderr: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  stderr.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line.slice(0, MAX_STDERR_LINE));
    if (rest.length <= MAX_STDERR_LINE) return;
    onLine(rest.slice(0, MAX_STDERR_LINE));
    rest = '';
  });
  stderr.on('end', () => {
    if (rest !== '') onLine(rest);
  });
  stderr.on('error', () => {});
}
