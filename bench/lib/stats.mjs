// Medians and markdown tables.

const finite = (values) => values.filter((value) => Number.isFinite(value));

/** The median of the finite values, NaN when there is none. */
export function median(values) {
  const sorted = finite(values).sort((a, b) => a - b);
  if (!sorted.length) return Number.NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of a[i] / b[i]: of one round each, so that the machine's mood cancels out. */
export function medianRatio(a, b) {
  const rounds = Math.min(a.length, b.length);
  return median(Array.from({ length: rounds }, (_, round) => a[round] / b[round]));
}

/** Three significant digits or so; '-' for no value. */
export function format(value) {
  if (!Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export const markdownRow = (cells) => `| ${cells.join(' | ')} |`;
export const markdownRule = (cells) => `|${cells.map(() => '---').join('|')}|`;

/** Samples by row. A sample is an object of numbers; a row that failed a check keeps the reasons. */
export class Table {
  constructor(title) {
    this.title = title;
    this.rows = new Map();
    this.fails = new Map();
  }

  add(key, sample) {
    this.rows.set(key, [...(this.rows.get(key) ?? []), sample]);
  }

  fail(key, reason) {
    this.fails.set(key, [...(this.fails.get(key) ?? []), reason]);
  }

  /** All samples of one column of one row. */
  column(key, name) {
    return (this.rows.get(key) ?? []).map((sample) => sample[name]);
  }

  median(key, name) {
    return median(this.column(key, name));
  }

  /**
   * Markdown with the median of each column (`{key, label, spread?}`). With `ratioTo` (a row) a last column gives
   * `ratioColumn` over that row's, round by round.
   */
  markdown(columns, { ratioTo, ratioColumn } = {}) {
    const ratioHead = ratioTo ? [`x of ${ratioTo}`] : [];
    const head = ['', 'runs', ...columns.map((column) => column.label), ...ratioHead, 'checks'];
    const lines = [`### ${this.title}`, '', markdownRow(head), markdownRule(head)];
    for (const key of new Set([...this.rows.keys(), ...this.fails.keys()])) {
      const cells = columns.map((column) => cell(this.column(key, column.key), column.spread));
      const ratio = ratioTo
        ? [format(medianRatio(this.column(key, ratioColumn), this.column(ratioTo, ratioColumn)))]
        : [];
      const failure = this.fails.get(key);
      const checks = failure ? `FAIL: ${failure[0]}` : 'ok';
      lines.push(markdownRow([key, this.rows.get(key)?.length ?? 0, ...cells, ...ratio, checks]));
    }
    return `${lines.join('\n')}\n`;
  }

  json() {
    return { title: this.title, rows: Object.fromEntries(this.rows), fails: Object.fromEntries(this.fails) };
  }
}

function cell(values, spread) {
  const known = finite(values);
  if (!spread || known.length < 2) return format(median(values));
  return `${format(median(values))} (${format(Math.min(...known))}-${format(Math.max(...known))})`;
}
