import type { Target } from './context.ts';
import type { Outcome } from './runner.ts';
import { type Check, describe, type Row, type Status, type Suite } from './suite.ts';
import { shorten } from './verdicts.ts';

/** What `--json` writes. */
export interface Report {
  readonly agent: { readonly command: readonly string[]; readonly info: unknown; readonly protocolVersion: unknown };
  /** The address of the daemon, or the command that started it; null where none was judged. */
  readonly daemon: string | null;
  readonly rows: readonly Row[];
  readonly summary: Readonly<Record<Status, number>>;
  readonly ok: boolean;
}

const STATUSES: readonly Status[] = ['pass', 'fail', 'warn', 'not advertised', 'skipped'];

export function reportOf({ findings, rows }: Outcome, { command, daemon }: Target, strict: boolean): Report {
  const { agentInfo, protocolVersion } = findings.initialized ?? {};
  const count = (status: Status) => rows.filter((row) => row.status === status).length;
  return {
    agent: { command, info: agentInfo ?? null, protocolVersion: protocolVersion ?? null },
    daemon: daemon === undefined ? null : 'url' in daemon ? daemon.url : daemon.serve,
    rows,
    summary: Object.fromEntries(STATUSES.map((status) => [status, count(status)])) as Record<Status, number>,
    ok: count('fail') === 0 && !(strict && count('warn') > 0),
  };
}

const FRAME_SHOWN = 240;
const INDENT = ' '.repeat(4);

/** One row for people: id, verdict, requirement, and what decided it. */
export function rowText({ id, status, requirement, reason, frame, profile }: Row): string {
  const verdict = status === 'fail' ? 'FAIL' : status;
  const mark = profile === 'better' ? ' [better]' : '';
  const lines = [`${id.padEnd(20)} ${verdict.padEnd(14)} ${requirement}${mark}`];
  if (reason !== undefined) lines.push(`${INDENT}${shorten(reason, FRAME_SHOWN)}`);
  if (frame !== undefined) lines.push(`${INDENT}${shorten(frame, FRAME_SHOWN)}`);
  return lines.join('\n');
}

export function summaryText({ summary, ok }: Report): string {
  const counts = STATUSES.filter((status) => summary[status] > 0).map((status) => `${summary[status]} ${status}`);
  return `${ok ? 'Conforms' : 'Does not conform'}: ${counts.join(', ') || 'nothing was checked'}.`;
}

/** The checks for people who read. */
export function listText(suites: readonly Suite[], markdown: boolean): string {
  return suites.map((suite) => (markdown ? markdownOf(suite) : plainOf(suite))).join('\n\n');
}

function plainOf({ id, title, checks }: Suite): string {
  return [
    `${id}: ${title}`,
    ...checks.map((check) => `  ${check.id.padEnd(20)} ${check.level.padEnd(6)} ${check.requirement}`),
  ].join('\n');
}

function markdownOf({ id, title, checks }: Suite): string {
  const head = [
    `### ${id}: ${title}`,
    '',
    '| id | level | profile | requirement | where | needs |',
    '|---|---|---|---|---|---|',
  ];
  return [...head, ...checks.map(markdownRow)].join('\n');
}

function markdownRow(check: Check): string {
  const { id, level, profile, requirement, source } = describe(check);
  return `| ${[id, level, profile, requirement, source, check.needs?.join(', ') ?? ''].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
