import { pino } from 'pino';
import type { Log, LogLevel } from '../log.ts';

/**
 * The daemon's log: one JSON object a line on stderr. Of an error it has the name, the code and the frames of the stack,
 * never the message, which may quote what people and models said.
 */
export function createDaemonLog(level: LogLevel): Log {
  const logger = pino({ level, base: { pid: process.pid } }, pino.destination({ dest: 2, sync: true }));
  const at = (name: Exclude<LogLevel, 'silent'>) => (message: string, cause?: unknown) => {
    if (cause === undefined) logger[name](message);
    else logger[name]({ cause: describeCause(cause) }, message);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

interface Cause {
  readonly name: string;
  readonly code?: unknown;
  readonly stack?: readonly string[];
  readonly cause?: Cause;
}

/** What of a thrown value may be logged. */
export function describeCause(cause: unknown): Cause {
  if (!(cause instanceof Error)) return { name: typeof cause };
  const code = 'code' in cause && /^(string|number)$/.test(typeof cause.code) ? cause.code : undefined;
  const stack = cause.stack?.split('\n').flatMap((line) => (/^\s+at /.test(line) ? [line.trim()] : []));
  return {
    name: cause.name,
    ...(code !== undefined && { code }),
    ...(stack && { stack }),
    ...(cause.cause !== undefined && { cause: describeCause(cause.cause) }),
  };
}
