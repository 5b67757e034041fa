import { homedir } from 'node:os';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ChildOptions } from '../cli/options.ts';
import { createLog, type Log, logLevelFrom } from '../log.ts';
import { createModelSource } from '../model/choose.ts';
import type { StopKind } from '../session/batch.ts';
import { gitBranch } from '../session/git.ts';
import { Sessions } from '../session/sessions.ts';
import { Agent } from './agent.ts';
import { unknownClient } from './ask.ts';
import { WireClient } from './client.ts';
import { createConnection } from './connection.ts';
import { toRequestError } from './faults.ts';

export interface StdioAgentOptions extends ChildOptions {
  readonly version: string;
}

/** What still waits for a lock, a model or a tool's server then is given up: a stop must not hang. In ms. */
const ENDED_AFTER_MS = 1_900;
/** What is left at least, where the connection took its whole grace to close. */
const LAST_WRITES_MS = 400;

/** The reference's daemon sets it; the child acknowledges its value. */
const GUARD_VARIABLE = 'QWEN_CODE_PRIVATE_EXTERNAL_TOOL_GUARD';

const SIGNALS = {
  SIGTERM: { stop: 'shutdown', exitCode: 0 },
  SIGINT: { stop: 'shutdown', exitCode: 130 },
  SIGHUP: { stop: 'hangup', exitCode: 0 },
} as const satisfies Record<string, { stop: StopKind; exitCode: number }>;

/**
 * Serves the agent on this process's stdio until the client hangs up or a signal ends it; every turn has stopped and
 * everything is written when it returns.
 */
export async function runStdioAgent(options: StdioAgentOptions): Promise<void> {
  const frames = keepStdoutForFrames();
  const log = createLog(logLevelFrom(options.logLevel, process.env['QWEN_ACP_LOG']));
  const connection = createConnection(process.stdin, frames, log, {
    ...(options.maxLineBytes !== undefined && { maxInboundLineBytes: options.maxLineBytes }),
    toRequestError,
  });
  const plainClient = options.plainClient === true;
  const client = unknownClient(plainClient);
  const models = createModelSource({
    env: process.env,
    home: homedir(),
    warn: (message) => log.warn(message),
    ...(options.authType && { authType: options.authType }),
    ...(options.model !== undefined && { model: options.model }),
    ...(options.script !== undefined && { scriptFile: options.script }),
  });
  const sessions = new Sessions({
    client: new WireClient(connection, client),
    model: models,
    menu: {
      choices: async (cwd) => models.choices(cwd).map(({ key, name }) => ({ id: key, description: name })),
      select: (cwd, id) => models.open(cwd, id),
    },
    async tools(session, setup) {
      const { openToolbox } = await import('./toolbox.ts');
      return await openToolbox({ connection, client, log, version: options.version }, session, setup);
    },
    restoreAskUserQuestion: options.restoreAskUserQuestion,
    gitBranch,
    version: options.version,
    env: process.env,
    log,
  });
  const ending = endOnSignals((kind) => connection.hangUp(kind));
  const agent = new Agent(
    {
      connection,
      sessions,
      models,
      version: options.version,
      restoreAskUserQuestion: options.restoreAskUserQuestion,
      plainClient,
      log,
      externalToolGuard: process.env[GUARD_VARIABLE] || undefined,
      stopKind: () => ending.stop,
    },
    client,
  );
  agent.serve();
  connection.listen();
  logStrays(log);
  await new Promise((resolve) => connection.signal.addEventListener('abort', resolve, { once: true }));
  const endBy = performance.now() + ENDED_AFTER_MS;
  await connection.closed;
  const left = Math.max(LAST_WRITES_MS, endBy - performance.now());
  await Promise.race([sessions.shutdown(ending.stop), delay(left)]);
  // Sockets of a provider may stay open for reuse; nothing is left to be done on them.
  process.exit(ending.exitCode);
}

/** Whatever prints, `console` included, goes to stderr from here on; only the returned stream writes to the client. */
function keepStdoutForFrames(): Writable {
  const frames = process.stdout;
  Object.defineProperty(process, 'stdout', { configurable: true, get: () => process.stderr });
  return frames;
}

interface Ending {
  stop: StopKind;
  exitCode: number;
}

function endOnSignals(hangUp: (signal: string) => void): Ending {
  const ending: Ending = { stop: 'shutdown', exitCode: 0 };
  let ended = false;
  for (const [signal, { stop, exitCode }] of Object.entries(SIGNALS)) {
    // Heard again and again: a signal that nobody listens to would end the process in the middle of a write.
    process.on(signal, () => {
      if (ended) return;
      ended = true;
      Object.assign(ending, { stop, exitCode });
      hangUp(signal);
    });
  }
  return ending;
}

/** A promise that nobody owns is a bug to be seen, not a reason to lose every session. */
function logStrays(log: Log): void {
  process.on('unhandledRejection', (reason) => log.error('unhandled rejection', reason));
}
