import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { StringDecoder } from 'node:string_decoder';
import { ToolFault } from '../session/faults.ts';
import type { Shell, ShellCommand, ShellResult } from '../session/ports.ts';
import { OutputBuffer } from './output-buffer.ts';
import { adoptGroup, endGroup, LEADS_GROUP } from './process-group.ts';

/** How often a running command's output is told at most, in ms. */
const HEARD_MS = 250;
/** What the pipe still holds once the group is gone is read for so long, in ms: a process that left the group may keep it open. */
const DRAIN_MS = 200;

/**
 * Commands run on this machine, each in a process group of its own with nothing on stdin. They get the environment of this
 * process as it is. What a command leaves running in its group ends with it.
 */
export function localShell(): Shell {
  return {
    async run(command, heard, signal) {
      signal.throwIfAborted();
      await requireFolder(command.cwd);
      const child = start(command);
      const pid = await started(child);
      adoptGroup(pid);
      return new Running(child, pid, heard).end(command.timeoutMs, signal);
    },
  };
}

/** One command from its start to the end of its group. */
class Running {
  readonly #child: ChildProcess;
  readonly #pid: number;
  readonly #heard: (output: string) => void;
  readonly #output = new OutputBuffer();
  readonly #exited: Promise<void>;
  readonly #closed: Promise<void>;
  #toTell: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess, pid: number, heard: (output: string) => void) {
    this.#child = child;
    this.#pid = pid;
    this.#heard = heard;
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()));
    this.#closed = new Promise((resolve) => child.once('close', () => resolve()));
    for (const stream of [child.stdout, child.stderr]) this.#listen(stream);
  }

  /** Rejects with the signal's reason, once nothing of the group is left. */
  async end(timeoutMs: number, signal: AbortSignal): Promise<ShellResult> {
    const cause = await this.#first(timeoutMs, signal);
    await endGroup(this.#pid);
    await this.#drain();
    clearTimeout(this.#toTell);
    signal.throwIfAborted();
    return {
      exitCode: this.#child.exitCode,
      signal: this.#child.signalCode,
      timedOut: cause === 'timeout',
      output: this.#output.text(),
      truncated: this.#output.truncated,
    };
  }

  #first(timeoutMs: number, signal: AbortSignal): Promise<'exit' | 'timeout' | 'abort'> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => finish('timeout'), timeoutMs);
      const onAbort = () => finish('abort');
      const finish = (cause: 'exit' | 'timeout' | 'abort') => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        resolve(cause);
      };
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) finish('abort');
      void this.#exited.then(() => finish('exit'));
    });
  }

  async #drain(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, DRAIN_MS);
    });
    await Promise.race([this.#closed, late]);
    clearTimeout(timer);
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream?.destroy();
  }

  #listen(stream: ChildProcess['stdout']): void {
    const decoder = new StringDecoder('utf8');
    stream?.on('data', (bytes: Buffer) => {
      this.#output.push(decoder.write(bytes));
      this.#toTell ??= setTimeout(() => {
        this.#toTell = undefined;
        this.#heard(this.#output.text());
      }, HEARD_MS);
    });
    stream?.on('end', () => this.#output.push(decoder.end()));
    // Its other end is gone; the exit says the rest.
    stream?.on('error', () => {});
  }
}

function start({ command, cwd }: ShellCommand): ChildProcess {
  const options: SpawnOptions = { cwd, stdio: ['ignore', 'pipe', 'pipe'], ...LEADS_GROUP };
  if (process.platform === 'win32') {
    const shell = process.env['ComSpec'] ?? 'cmd.exe';
    return spawn(shell, ['/d', '/s', '/c', `"${command}"`], { ...options, windowsVerbatimArguments: true });
  }
  // One pipe for both, so that the order of what they say is kept.
  return spawn(posixShell(), ['-c', `exec 2>&1\n${command}`], options);
}

/** Models write for bash; where there is none the system's own shell has to do. */
function posixShell(): string {
  return ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash'].find(existsSync) ?? '/bin/sh';
}

function started(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid as number));
    child.once('error', (error) =>
      reject(new ToolFault('shell_execute_error', `The command could not be started: ${error.message}`)),
    );
  });
}

async function requireFolder(path: string): Promise<void> {
  const isFolder = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new ToolFault('shell_execute_error', `There is no folder ${path} to run the command in.`);
}
