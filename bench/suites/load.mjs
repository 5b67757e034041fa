// Loading and resuming transcripts of several sizes. Sizes and agents take turns round by round.
import fs from 'node:fs';
import { supports } from '../lib/agents.mjs';
import { runLimit } from '../lib/bench.mjs';
import { transcriptOf } from '../lib/transcripts.mjs';
import { loadOnce } from './load-once.mjs';
import { MODES } from './load-modes.mjs';

export const PARSE_ROW = 'limit: read + JSON.parse';

const COLUMNS = [
  { key: 'ms', label: 'ms to response', spread: true },
  { key: 'first', label: 'first update ms' },
  { key: 'frames', label: 'replay updates' },
  { key: 'megabytes', label: 'MB out' },
  { key: 'cpu', label: 'CPU ms' },
  { key: 'idle', label: 'peak RSS MB before' },
  { key: 'peak', label: 'peak RSS MB' },
];
const RESTORE_COLUMNS = [
  { key: 'reissued', label: 'prompt to permission ms' },
  { key: 'turn', label: 'restored turn ms' },
];

/** Tables by `<mode> <count>`. */
export async function loadSuite(bench, modeNames) {
  const tables = new Map();
  for (const name of modeNames) {
    const mode = MODES[name];
    if (!mode) throw new Error(`no mode "${name}": ${Object.keys(MODES).join(', ')}`);
    const rows = bench.options.counts.map((count) => {
      const transcript = transcriptOf(bench, count, mode.question);
      const size = `${count} records, ${(transcript.bytes / 1e6).toFixed(1)} MB, ${transcript.closed.length} updates`;
      const table = bench.table(`${name}: ${size}`);
      tables.set(`${name} ${count}`, table);
      return { transcript, table, rounds: roundsFor(mode, count, bench.options.runs) };
    });
    await runRounds(bench, mode, rows);
    const columns = mode.restore ? [...COLUMNS, ...RESTORE_COLUMNS] : COLUMNS;
    for (const { table } of rows) bench.say(table.markdown(columns, { ratioTo: PARSE_ROW, ratioColumn: 'ms' }));
  }
  return tables;
}

/** Whole replays of many records are slow to check and vary little. */
function roundsFor(mode, count, runs) {
  if (!mode.whole) return runs;
  return count >= 100_000 ? Math.min(3, runs) : count >= 10_000 ? Math.min(5, runs) : runs;
}

async function runRounds(bench, mode, rows) {
  const agents = bench.agents.filter((agent) => supports(agent, 'load'));
  for (let round = 0; round < Math.max(...rows.map((row) => row.rounds)); round++) {
    for (const { transcript, table, rounds } of rows) {
      if (round >= rounds) continue;
      // Once untimed, or the first round would read from the disk what the others find in memory.
      if (round === 0) fs.readFileSync(transcript.file);
      if (mode.whole || round < 3) {
        const limit = await runLimit(bench, 'readparse.mjs', transcript.file);
        table.add(PARSE_ROW, { ms: limit.totalMs, peak: limit.rssMB, read: limit.readMs });
      }
      for (const agent of agents) await loadOnce(bench, table, agent, transcript, mode);
    }
  }
}
