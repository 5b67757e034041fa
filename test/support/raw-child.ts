import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { Home, type PeerOptions, spawnChild } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks at frames of every form
export type Frame = any;

export const call = (id: unknown, method: string, params: unknown = {}) => ({ jsonrpc: '2.0', id, method, params });

/** The real child process, spoken to in bytes. Ended with the test. */
export class RawChild {
  readonly home: Home;
  readonly child: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Lines on stdout that are no JSON-RPC message. */
  readonly noise: string[] = [];
  stderr = '';
  readonly #frames: AsyncGenerator<Frame>;

  constructor({ home = new Home(), ...options }: Omit<PeerOptions, 'initialize'> = {}) {
    this.home = home;
    this.child = spawnChild(home, options);
    this.exited = once(this.child, 'exit').then(([code, signal]) => ({ code, signal }));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.child.stdin.on('error', () => {});
    this.#frames = this.#read();
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.exited;
    });
  }

  /** Sends frames, or text or bytes as they are, each as one line, all in one write. */
  send(...lines: readonly (Frame | string | Buffer)[]): void {
    this.write(
      Buffer.concat(
        lines.flatMap((line) => [
          Buffer.isBuffer(line) ? line : Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)),
          Buffer.from('\n'),
        ]),
      ),
    );
  }

  write(bytes: Buffer | string): void {
    this.child.stdin.write(bytes);
  }

  /** The next frame from the child. */
  async next(): Promise<Frame> {
    const { value, done } = await this.#frames.next();
    if (done) throw new Error(`the child ended its output: ${this.stderr}`);
    return value;
  }

  /** The frames up to the answer to this id, that one included. */
  async until(id: unknown): Promise<Frame[]> {
    const frames: Frame[] = [];
    for (;;) {
      const frame = await this.next();
      frames.push(frame);
      if (frame.id === id && !('method' in frame)) return frames;
    }
  }

  /** Sends one request and answers its response; what came before it is dropped. */
  async call(id: unknown, method: string, params: unknown = {}): Promise<Frame> {
    this.send(call(id, method, params));
    return (await this.until(id)).at(-1);
  }

  async *#read(): AsyncGenerator<Frame> {
    // A long line comes in many pieces; joining them one by one would be quadratic.
    let pieces: string[] = [];
    for await (const chunk of this.child.stdout.setEncoding('utf8')) {
      pieces.push(chunk);
      if (!chunk.includes('\n')) continue;
      const lines = pieces.join('').split('\n');
      pieces = [lines.pop() ?? ''];
      for (const line of lines) {
        const frame = parsed(line);
        if (frame === undefined) this.noise.push(line);
        else yield frame;
      }
    }
    const rest = pieces.join('');
    if (rest !== '') this.noise.push(rest);
  }
}

function parsed(line: string): Frame | undefined {
  try {
    const frame = JSON.parse(line);
    return frame?.jsonrpc === '2.0' ? frame : undefined;
  } catch {
    return undefined;
  }
}
