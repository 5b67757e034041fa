import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import type { Target } from './context.ts';
import { NoAgent } from './probe.ts';
import { listText, reportOf, rowText, summaryText } from './report.ts';
import { run } from './runner.ts';
import { SUITES } from './suites/all.ts';

/** What the command line asks for. */
export interface KitOptions {
  readonly command: readonly string[];
  readonly daemon?: string;
  readonly serve?: string;
  readonly suites: readonly string[];
  readonly only?: readonly string[];
  readonly core: boolean;
  readonly strict: boolean;
  /** How long one wait may take, in s. */
  readonly timeout: number;
  /** How long an agent lives on before it is killed, in ms. */
  readonly thinking: number;
  readonly jobs?: number;
  readonly json?: string;
  readonly home?: string;
  readonly env: Readonly<Record<string, string>>;
  /** Says which checks there are, and starts nothing. */
  readonly list?: 'text' | 'markdown';
}

/** 0: conforms; 1: does not; 2: it could not be judged. */
export type ExitCode = 0 | 1 | 2;

/** Runs the kit; says what it finds line by line. Never hangs: all that it waits for and starts has an end. */
export async function runKit(options: KitOptions, say: (text: string) => void): Promise<ExitCode> {
  const suites = SUITES.filter(({ id }) => options.suites.includes(id));
  if (options.list !== undefined) {
    say(listText(suites, options.list === 'markdown'));
    return 0;
  }
  const unknown = options.only?.filter((id) => !suites.some(({ checks }) => checks.some((check) => check.id === id)));
  if (unknown?.length) {
    say(`There is no check ${unknown.join(', ')} in ${options.suites.join(', ')}; --list names them.`);
    return 2;
  }
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    const target = targetOf(options);
    const outcome = await run({
      target,
      suites,
      patience: options.timeout * 1000,
      thinking: options.thinking,
      jobs: options.jobs ?? Math.max(2, availableParallelism()),
      signal: stop.signal,
      onRow: (row) => say(rowText(row)),
      ...(options.only && { only: options.only }),
      ...(options.core && { profile: 'core' }),
    });
    const report = reportOf(outcome, target, options.strict);
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
    say(`\n${summaryText(report)}`);
    return stop.signal.aborted ? 2 : report.ok ? 0 : 1;
  } catch (error) {
    if (!(error instanceof NoAgent)) throw error;
    say(error.message);
    return 2;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

function targetOf({ command, env, home, daemon, serve }: KitOptions): Target {
  return {
    command,
    env,
    ...(home !== undefined && { home }),
    ...(daemon !== undefined && { daemon: { url: daemon } }),
    ...(serve !== undefined && { daemon: { serve } }),
  };
}
