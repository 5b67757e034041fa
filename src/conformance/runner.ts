import { Context, type Target } from './context.ts';
import { probe } from './probe.ts';
import { Shared } from './shared.ts';
import { type Check, describe, type Findings, type Row, type Suite } from './suite.ts';
import { NotSaid, Unmet, within } from './verdicts.ts';

export interface RunOptions {
  readonly target: Target;
  readonly suites: readonly Suite[];
  /** Ids; all when absent. */
  readonly only?: readonly string[];
  /** `core` leaves out the checks of what is better than the reference. */
  readonly profile?: 'core';
  /** How long one wait may take, in ms. */
  readonly patience: number;
  /** How long an agent lives on before it is killed with SIGKILL, in ms; 0 when absent. */
  readonly thinking?: number;
  /** Checks at the same time. */
  readonly jobs: number;
  /** What the agent is known to be; found out by starting it once when absent. */
  readonly findings?: Findings;
  /** Ends everything; what has not been decided is skipped. */
  readonly signal?: AbortSignal;
  /** Told of each row as soon as those before it are decided. */
  readonly onRow?: (row: Row) => void;
}

export interface Outcome {
  readonly findings: Findings;
  /** In the order of the suites. */
  readonly rows: readonly Row[];
}

/** A check waits several times, each with its own deadline; together for this many times the patience at most. */
const CHECK_PATIENCES = 6;
/** The whole run, in ms; what has not begun by then is skipped. */
const RUN_LIMIT = 30 * 60_000;

/** Runs the chosen checks, several at a time. Throws `NoAgent` when the agent cannot be started. */
export async function run(options: RunOptions): Promise<Outcome> {
  const deadline = performance.now() + RUN_LIMIT;
  const chosen = options.suites.flatMap((suite) => suite.checks.map((check) => ({ suite: suite.id, check })));
  const wanted = chosen.filter(({ check }) => isWanted(check, options));
  const takers = wanted.filter(({ check }) => check.needs?.includes('hung')).length;
  const shared = new Shared(options.target, { patience: options.patience, thinking: options.thinking ?? 0 }, takers);
  try {
    const findings = options.findings ?? (await probe(options.target, options.patience, shared));
    return { findings, rows: await runAll(wanted, options, { findings, shared }, deadline) };
  } finally {
    await shared.close();
  }
}

type Wanted = { readonly suite: string; readonly check: Check };
type Known = { readonly findings: Findings; readonly shared: Shared };

async function runAll(
  wanted: readonly Wanted[],
  options: RunOptions,
  known: Known,
  deadline: number,
): Promise<readonly Row[]> {
  const rows: Row[] = new Array(wanted.length);
  let [next, told] = [0, 0];
  const work = async () => {
    for (let index = next++; index < wanted.length; index = next++) {
      const { suite, check } = wanted[index] as Wanted;
      const verdict = performance.now() > deadline ? OUT_OF_TIME : await judge(check, options, known);
      const row = { suite, ...describe(check), ...verdict, ms: verdict.ms ?? 0 };
      rows[index] = row;
      for (let ready = rows[told]; ready !== undefined; ready = rows[told]) {
        told += 1;
        options.onRow?.(ready);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, options.jobs) }, work));
  return rows;
}

function isWanted({ id, profile }: Check, options: RunOptions): boolean {
  if (options.profile === 'core' && profile !== 'core') return false;
  return options.only === undefined || options.only.includes(id);
}

type Verdict = Pick<Row, 'status' | 'reason' | 'frame'> & { readonly ms?: number };

const OUT_OF_TIME: Verdict = { status: 'skipped', reason: 'the run took too long' };
const STOPPED: Verdict = { status: 'skipped', reason: 'the run was stopped' };

async function judge(
  check: Check,
  { target, patience, thinking = 0, signal }: RunOptions,
  known: Known,
): Promise<Verdict> {
  if (signal?.aborted) return STOPPED;
  for (const need of check.needs ?? []) {
    const lack = known.findings.lacks.get(need);
    if (lack !== undefined) return lack;
  }
  const started = performance.now();
  const context = await Context.open(target, { patience, thinking }, known);
  const onAbort = () => void context.close();
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const running = check.run(context);
    // After the deadline its processes are ended, which ends it; nobody listens any more.
    running.catch(() => {});
    await within(running, CHECK_PATIENCES * patience, 'the end of the check');
    return { status: 'pass', ms: performance.now() - started };
  } catch (error) {
    return signal?.aborted ? STOPPED : { ...verdictOf(error, check), ms: performance.now() - started };
  } finally {
    signal?.removeEventListener('abort', onAbort);
    await context.close();
  }
}

function verdictOf(error: unknown, { level }: Check): Verdict {
  if (error instanceof NotSaid) return { status: error.status, reason: error.message };
  const status = level === 'must' ? 'fail' : 'warn';
  if (error instanceof Unmet)
    return { status, reason: error.message, ...(error.frame !== undefined && { frame: error.frame }) };
  // The agent sent something that a check did not expect to be possible.
  return { status, reason: error instanceof Error ? error.message : String(error) };
}
