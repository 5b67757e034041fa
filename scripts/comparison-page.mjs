// The page docs/COMPARISON.md: two reports of the conformance kit side by side.

const STATUSES = ['pass', 'fail', 'warn', 'not advertised', 'skipped'];
const LONGEST_REASON = 160;
const INTRODUCTION = `Written by \`npm run comparison\`, which runs the [conformance kit](CONFORMANCE.md) against both on the same machine.
\`better\` marks what is promised here beyond the reference; a \`should\` that is not met is a \`warn\`. Requirements with two
letters and a number are those of this project; the kit's own page says where each check comes from.`;

/** `sides`: [name, report] of each, from the same run. Throws where they were not asked the same. */
export function comparisonPage(sides) {
  const [[, first]] = sides;
  const ids = (report) => report.rows.map(({ id }) => id).join();
  for (const [name, report] of sides) if (ids(report) !== ids(first)) throw new Error(`${name} was asked other checks`);
  const suites = [...new Set(first.rows.map(({ suite }) => suite))];
  return `${[
    '# Beside the reference',
    INTRODUCTION,
    '## Totals',
    table(
      ['suite', 'checks', ...sides.map(([name]) => name)],
      [...suites, undefined].map((suite) => total(suite, sides)),
    ),
    '## Where one does not pass',
    table(
      ['check', 'whose', 'verdict', 'why'],
      sides.flatMap(([name, report]) => lacks(name, report)),
    ),
    ...suites.flatMap((suite) => [`## ${suite}`, checksOf(suite, sides)]),
  ].join('\n\n')}\n`;
}

function total(suite, sides) {
  const of = ({ rows }) => rows.filter((row) => suite === undefined || row.suite === suite);
  const counts = sides.map(([, report]) =>
    STATUSES.map((status) => [of(report).filter((row) => row.status === status).length, status])
      .filter(([count]) => count > 0)
      .map((pair) => pair.join(' '))
      .join(', '),
  );
  return [suite ?? '**all**', of(sides[0][1]).length, ...counts];
}

const lacks = (name, { rows }) =>
  rows
    .filter(({ status }) => status !== 'pass')
    .map(({ id, status, profile, reason = '' }) => [`${id}${mark(profile)}`, name, status, stable(reason)]);

function checksOf(suite, sides) {
  const rows = sides[0][1].rows.filter((row) => row.suite === suite);
  const verdict = (report, id) => report.rows.find((row) => row.id === id).status;
  return table(
    ['check', 'requirement', 'level', ...sides.map(([name]) => name)],
    rows.map(({ id, requirement, level, profile }) => [
      `${id}${mark(profile)}`,
      requirement,
      level,
      ...sides.map(([, report]) => verdict(report, id)),
    ]),
  );
}

const mark = (profile) => (profile === 'better' ? ' `better`' : '');

/** Without what is another in every run. */
function stable(reason) {
  const text = reason
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, '<id>')
    .replace(/\/\S*acp-conformance-\w+/g, '<home>')
    .replace(/"pid":\d+/g, '"pid":0')
    .replace(/\s+/g, ' ');
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}

const cell = (value) => String(value).replaceAll('|', '\\|').replaceAll('<', '&lt;');
const line = (cells) => `| ${cells.map(cell).join(' | ')} |`;
const table = (head, rows) => [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
