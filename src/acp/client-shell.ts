import { ToolFault } from '../session/faults.ts';
import type { SessionRef, Shell, ShellCommand, ShellResult } from '../session/ports.ts';
import { untilAbort } from '../until-abort.ts';
import type { Connection } from './connection.ts';
import { RequestError } from './errors.ts';
import * as methods from './methods.ts';
import type { RequestMethod } from './rpc.ts';

/** Bytes of output that the client is asked to keep. */
const OUTPUT_BYTES = 1 << 20;
/** A client that does not say how a killed command ended, or does not end it, is not waited for longer, in ms. */
const CLEAN_UP_MS = 400;

/** Runs a session's commands in its client's terminals. `inTerminal` is told each, for the card. */
export function clientShell(
  session: SessionRef,
  connection: Connection,
  inTerminal: (terminalId: string) => void,
): Shell {
  return {
    async run(command, heard, signal) {
      const terminal = await Terminal.open(connection, session.id, command, signal);
      inTerminal(terminal.id);
      try {
        return await terminal.result(command.timeoutMs, signal);
      } catch (error) {
        if (signal.aborted) heard((await terminal.output()).output);
        throw error;
      } finally {
        await terminal.release();
      }
    },
  };
}

class Terminal {
  readonly id: string;
  readonly #connection: Connection;
  readonly #sessionId: string;
  #ended = false;

  private constructor(connection: Connection, sessionId: string, id: string) {
    this.#connection = connection;
    this.#sessionId = sessionId;
    this.id = id;
  }

  static async open(
    connection: Connection,
    sessionId: string,
    { command, cwd, timeoutMs }: ShellCommand,
    signal: AbortSignal,
  ): Promise<Terminal> {
    const stop = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const params = { sessionId, ...inShell(command), cwd, outputByteLimit: OUTPUT_BYTES };
    // Without the signal: a terminal that comes too late has to be ended, too.
    const opening = connection
      .request(methods.createTerminal, params)
      .then(({ terminalId }) => new Terminal(connection, sessionId, terminalId));
    try {
      return await untilAbort(opening, stop);
    } catch (error) {
      if (stop.aborted) opening.then((terminal) => terminal.release()).catch(ignore);
      if (error instanceof RequestError) throw refused(error);
      if (signal.aborted || !stop.aborted) throw error;
      throw new ToolFault('shell_execute_error', `The client opened no terminal within ${timeoutMs} ms.`);
    }
  }

  /** Waits for the command's end, or ends it when its time is over. Throws the signal's reason on abort. */
  async result(timeoutMs: number, signal: AbortSignal): Promise<ShellResult> {
    const { timedOut, exit } = await this.#exit(timeoutMs, signal);
    this.#ended = exit !== undefined;
    const { output, truncated } = await this.output();
    return { exitCode: exit?.exitCode ?? null, signal: exit?.signal ?? null, timedOut, output, truncated };
  }

  /** The output so far; empty when the client does not give it. */
  async output(): Promise<{ readonly output: string; readonly truncated: boolean }> {
    const given = await this.#quietly(methods.terminalOutput);
    return { output: given?.output ?? '', truncated: given?.truncated === true };
  }

  /** Ends the command, if it runs, and lets the client forget it. Never rejects. */
  async release(): Promise<void> {
    if (!this.#ended) await this.#quietly(methods.killTerminal);
    await this.#quietly(methods.releaseTerminal);
  }

  async #exit(timeoutMs: number, signal: AbortSignal) {
    const late = AbortSignal.timeout(timeoutMs);
    const stop = AbortSignal.any([signal, late]);
    try {
      const params = { sessionId: this.#sessionId, terminalId: this.id };
      const exit = await this.#connection.request(methods.waitForTerminalExit, params, { signal: stop });
      return { timedOut: false, exit };
    } catch (error) {
      if (error instanceof RequestError) throw refused(error);
      if (signal.aborted || !late.aborted) throw error;
      await this.#quietly(methods.killTerminal);
      return { timedOut: true, exit: await this.#quietly(methods.waitForTerminalExit) };
    }
  }

  async #quietly<R>(method: RequestMethod<{ sessionId: string; terminalId: string }, R>): Promise<R | undefined> {
    try {
      const params = { sessionId: this.#sessionId, terminalId: this.id };
      return await this.#connection.request(method, params, { deadlineMs: CLEAN_UP_MS });
    } catch {
      // What the client does not do cannot be helped from here.
      return undefined;
    }
  }
}

/** A client runs programs; the command is for a shell. */
const inShell = (command: string): { command: string; args: string[] } =>
  process.platform === 'win32'
    ? { command: 'cmd.exe', args: ['/d', '/s', '/c', command] }
    : { command: '/bin/sh', args: ['-c', command] };

function refused({ message, code }: RequestError): ToolFault {
  return new ToolFault('shell_execute_error', `The client's terminal failed: ${message.slice(0, 500)} (error ${code})`);
}

function ignore(): void {}
