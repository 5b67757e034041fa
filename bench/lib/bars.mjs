// The bars of the requirements PF-1 to PF-6, applied to what was measured. Pure: tables in, rows out.
import { format, markdownRow, markdownRule, median, medianRatio } from './stats.mjs';

/**
 * Rows `{id, what, value, unit, bar, pass, wrong}` for one agent. `measured` is `{start, loads, long, short, question,
 * small, large, daemon?}`: the suites' tables, the loads by `<mode> <count>`, the two sizes that are compared, and the
 * daemon's tables where the agent has one. `wrong` says what was wrong with an answer; such a row has no value.
 */
export function judge(agent, measured, rows) {
  return [...startRows(agent, measured, rows), ...tailRows(agent, measured), ...loadRows(agent, measured, rows)].concat(
    turnRows(agent, measured),
    measured.daemon ? daemonRows(agent, measured.daemon) : [],
  );
}

function row(id, what, value, unit, bar, tables, names) {
  const reasons = tables.flatMap((table) => names.flatMap((name) => table.fails.get(name) ?? []));
  const wrong = reasons[0] ?? (Number.isFinite(value) ? null : 'nothing was measured');
  return { id, what, value, unit, bar, pass: wrong === null && value <= bar, wrong };
}

function startRows(agent, { start }, { node }) {
  const over = (column) => medianRatio(start.column(agent, column), start.column(node, column));
  const line = (what, value, unit, bar) => row('PF-1', what, value, unit, bar, [start], [agent]);
  return [
    line('spawn to initialize, over node -e 0', over('init'), 'x', 2.0),
    line('spawn to session/new, over node -e 0', over('fresh'), 'x', 2.5),
    line('peak memory then', start.median(agent, 'peak'), 'MB', 70),
    line('processes', Math.max(...start.column(agent, 'procs')), '', 1),
  ];
}

const TAIL_MODES = { resume: 'session/resume', 'auq-resume+flag': 'resume and restore decision', page: 'page of 100' };

function tailRows(agent, { loads, small, large }) {
  return Object.entries(TAIL_MODES).map(([mode, name]) => {
    const tables = [loads.get(`${mode} ${small}`), loads.get(`${mode} ${large}`)];
    const [few, many] = tables.map((table) => table.column(agent, 'ms'));
    const times = `${format(median(few))} to ${format(median(many))} ms`;
    const what = `${name}, ${large} over ${small} records (${times})`;
    return row('PF-2', what, medianRatio(many, few), 'x', 2.0, tables, [agent]);
  });
}

function loadRows(agent, { loads, small, large }, { parse }) {
  const [few, many] = [loads.get(`load ${small}`), loads.get(`load ${large}`)];
  const limit = many.column(parse, 'ms');
  const overIdle = many.column(agent, 'peak').map((peak, round) => peak - many.column(agent, 'idle')[round]);
  const line = (what, value, unit, bar, table = many) => row('PF-3', what, value, unit, bar, [table], [agent]);
  return [
    line(`load of ${large} records, over read + parse`, medianRatio(many.column(agent, 'ms'), limit), 'x', 2.0),
    line('first update of it, over read + parse', medianRatio(many.column(agent, 'first'), limit), 'x', 0.6),
    line('peak memory of it over idle', median(overIdle), 'MB', 150),
    line(`load of ${small} records`, few.median(agent, 'ms'), 'ms', 15, few),
  ];
}

function turnRows(agent, { long, short, question }) {
  const deltaRows = ['1st turn', '2nd turn'].map((turn) => {
    const name = `${agent}, ${turn}`;
    const value = long.median(name, 'perDeltaAfterFirst');
    return row('PF-4', `a delta after the first frame, ${turn}`, value, 'us', 15, [long], [agent, name]);
  });
  const beyond = short.median(agent, 'beyondModel');
  const fsynced = question.median(agent, 'beyondFsync');
  return [
    ...deltaRows,
    row('PF-4', "turn of 5 deltas beyond the model's own time", beyond, 'ms', 10, [short], [agent]),
    row('PF-4', 'answer to completed update beyond the fsync', fsynced, 'ms', 4, [question], [agent]),
  ];
}

function daemonRows(agent, { start, load, fanOut, waiting }) {
  const overNode = (column) => medianRatio(start.column(agent, column), start.column(agent, 'node'));
  const line = (id, table, what, value, unit, bar) => row(id, `daemon: ${what}`, value, unit, bar, [table], [agent]);
  const of = (table, column) => table.median(agent, column);
  return [
    line('PF-5', start, 'spawn to /health, over node -e 0', overNode('health'), 'x', 4),
    line('PF-5', start, 'the same after a crash', overNode('afterCrash'), 'x', 4),
    line('PF-5', start, 'POST /session after the first', of(start, 'create'), 'ms', 10),
    line('PF-5', load, 'load of 10000 records to the waiting question', of(load, 'seconds'), 's', 0.5),
    line('PF-5', fanOut, 'an event for each of 50 subscribers', of(fanOut, 'each'), 'us', 5),
    line('PF-6', waiting, 'memory while a question waits', of(waiting, 'question'), 'KB', 20),
    line('PF-6', waiting, 'a vote on one of them, median', of(waiting, 'vote'), 'ms', 10),
  ];
}

const verdict = ({ wrong, pass }) => (wrong ? `WRONG: ${wrong}` : pass ? 'pass' : 'FAIL: slow or big');

/** The rows as one markdown table. */
export function renderVerdicts(title, rows) {
  const head = ['id', 'what', 'measured', 'bar', 'verdict'];
  const cells = (item) => [item.id, item.what, withUnit(item.wrong ? Number.NaN : item.value, item.unit)];
  const lines = rows.map((item) => markdownRow([...cells(item), `<= ${withUnit(item.bar, item.unit)}`, verdict(item)]));
  return [`## ${title}`, '', markdownRow(head), markdownRule(head), ...lines, ''].join('\n');
}

const withUnit = (value, unit) => `${format(value)} ${unit}`.trim();
