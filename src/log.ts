export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Diagnostics for the person who runs the program: one line each on stderr. */
export interface Log {
  debug(message: string, cause?: unknown): void;
  info(message: string, cause?: unknown): void;
  warn(message: string, cause?: unknown): void;
  error(message: string, cause?: unknown): void;
}

/** `write` takes one whole line, newline included. A `cause` is appended, an error with its stack. */
export function createLog(level: LogLevel, write: (line: string) => void = writeToStderr): Log {
  const threshold = LOG_LEVELS.indexOf(level);
  const at = (name: LogLevel) => {
    const enabled = LOG_LEVELS.indexOf(name) >= threshold;
    return (message: string, cause?: unknown) => {
      if (enabled)
        write(`qwen-acp ${name}: ${oneLine(cause === undefined ? message : `${message}: ${describe(cause)}`)}\n`);
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** The level of `--log-level`, else of `QWEN_ACP_LOG`, else `warn`; an unknown word in the variable counts as unset. */
export function logLevelFrom(flag: LogLevel | undefined, variable: string | undefined): LogLevel {
  return flag ?? LOG_LEVELS.find((level) => level === variable?.toLowerCase()) ?? 'warn';
}

function describe(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const text = cause.stack ?? `${cause.name}: ${cause.message}`;
  return cause.cause === undefined ? text : `${text} caused by ${describe(cause.cause)}`;
}

function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, ' | ');
}

function writeToStderr(line: string): void {
  process.stderr.write(line);
}
