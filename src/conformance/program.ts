import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

export interface Launch {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const STDERR_KEPT = 16_384;
const OWN_GROUP = process.platform !== 'win32';

/** A program in a process group of its own, so that whatever it starts can be ended with it. */
export class Program {
  readonly #process: ChildProcessWithoutNullStreams;
  /** Rejects where the program cannot be started. */
  readonly started: Promise<void>;
  /** Resolves when it is gone; a program that never started counts as gone. */
  readonly exited: Promise<Exit>;
  #stderr = '';
  #exit: Exit | undefined;
  #isGone = false;

  constructor({ command, cwd, env }: Launch) {
    const [file = '', ...args] = command;
    this.#process = spawn(file, args, { cwd, env: { ...env }, detached: OWN_GROUP });
    this.started = new Promise((resolve, reject) => {
      this.#process.once('spawn', resolve).once('error', reject);
    });
    this.started.catch(() => {});
    this.exited = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => resolve({ code, signal }));
      this.#process.once('error', () => resolve({ code: null, signal: null }));
    });
    void this.exited.then((exit) => {
      this.#exit = exit;
      // From now on its id may be given to another, unless it left somebody behind in its group.
      this.#isGone = !this.#signalGroup(0);
    });
    // A write to a program that is gone is told by its exit.
    this.#process.stdin.on('error', () => {});
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get stdin() {
    return this.#process.stdin;
  }

  get stdout() {
    return this.#process.stdout;
  }

  /** The end of what it wrote to stderr. */
  get stderr(): string {
    return this.#stderr;
  }

  /** How it ended; undefined while it runs. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  /** To the program alone, as a supervisor would. */
  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Ends the program and all that it started, at once; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#signalGroup('SIGKILL');
    await this.exited;
    // What inherited the pipes would keep this process alive.
    for (const pipe of [this.#process.stdin, this.#process.stdout, this.#process.stderr]) pipe.destroy();
  }

  /** Whether the program, or anything that it started and left behind, still runs. */
  get leavesSomebody(): boolean {
    return OWN_GROUP && this.#signalGroup(0);
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    if (this.pid === undefined || this.#isGone) return false;
    try {
      return OWN_GROUP ? process.kill(-this.pid, signal) : this.#process.kill(signal);
    } catch {
      return false;
    }
  }
}
