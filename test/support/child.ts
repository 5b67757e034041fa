import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

/** Bundles a TypeScript test program so that every supported Node can run it; answers the bundle's path. */
export function bundle(entry: URL, folder: string): string {
  const outfile = join(folder, 'child.mjs');
  buildSync({
    entryPoints: [fileURLToPath(entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  });
  return outfile;
}

/** A child process that answers each message with one message. */
export class Child {
  readonly process: ChildProcess;

  constructor(script: string, execPath?: { readonly command: string; readonly args: readonly string[] }) {
    this.process = fork(script, {
      serialization: 'advanced',
      ...(execPath === undefined ? {} : { execPath: execPath.command, execArgv: [...execPath.args] }),
    });
  }

  async call<T>(message: unknown): Promise<T> {
    const gone = new AbortController();
    const answered = once(this.process, 'message', { signal: gone.signal });
    const exited = once(this.process, 'exit', { signal: gone.signal }).then(([code, signal]) => {
      throw new Error(`the child ended (${code ?? signal}) without an answer`);
    });
    this.process.send(message as object);
    try {
      return (await Promise.race([answered.then(([answer]) => answer as T), exited])) as T;
    } finally {
      gone.abort();
      await Promise.allSettled([answered, exited]);
    }
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await exited;
  }
}
