#!/usr/bin/env node
// npm run bench: PF-1 to PF-6 of one agent beside the physical limits, judged. See README.md.
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { warmUp } from './lib/agents.mjs';
import { judge, renderVerdicts } from './lib/bars.mjs';
import { DEFAULTS, failures, machine, openBench } from './lib/bench.mjs';
import { daemonSuite } from './suites/daemon.mjs';
import { loadSuite, PARSE_ROW } from './suites/load.mjs';
import { promptSuite } from './suites/prompt.mjs';
import { NODE_ROW, startSuite } from './suites/start.mjs';

const PLANS = {
  full: { counts: [100, 1_000, 10_000, 100_000], start: 15, tail: 9, load: 7, prompt: 5, daemon: 5, waiting: 10_000 },
  quick: { counts: [100, 1_000, 10_000], start: 7, tail: 5, load: 3, prompt: 2, daemon: 3, waiting: 2_000 },
};
const TAIL_MODES = ['resume', 'auq-resume+flag', 'page'];

const USAGE = `node bench/run.mjs [--quick | --full] [--agent NAME] [--agents FILE] [--work DIR] [--json FILE] [--profile DIR]
  --quick    fewer rounds, at most 10,000 records     --json     raw samples and verdicts
  --full     up to 100,000 records (the default)      --profile  CPU profiles of the agent (the figures suffer)`;

function readOptions() {
  const text = (value) => ({ type: 'string', default: value });
  const flag = { type: 'boolean', default: false };
  const options = { quick: flag, full: flag, help: flag, agent: text('qwen-acp'), json: text(''), profile: text('') };
  return parseArgs({ options: { ...options, agents: text(DEFAULTS.agents), work: text(DEFAULTS.work) } }).values;
}

async function measure(bench, plan) {
  const withOptions = (options) => ({ ...bench, options: { ...bench.options, ...options } });
  const [small, large] = [plan.counts[0], plan.counts.at(-1)];
  const start = await startSuite(withOptions({ runs: plan.start }));
  const tails = await loadSuite(withOptions({ runs: plan.tail, counts: [small, large] }), TAIL_MODES);
  const whole = await loadSuite(withOptions({ runs: plan.load, counts: plan.counts }), ['load']);
  const turns = await promptSuite(withOptions({ runs: plan.prompt }));
  const hasDaemon = bench.agents.some((agent) => agent.serve);
  const daemon = hasDaemon && (await daemonSuite(withOptions({ runs: plan.daemon }), plan.waiting));
  return { daemon, start, loads: new Map([...tails, ...whole]), ...turns, small, large };
}

/** Measures and prints; the exit code. Slow is a figure; wrong is a failure. */
async function run(values) {
  const scale = values.quick && !values.full ? 'quick' : 'full';
  const { agents, work, profile } = values;
  const bench = await openBench({ agents, work, profile, only: [values.agent] });
  try {
    const problems = await warmUp(bench);
    if (problems.length) {
      bench.say(`${problems.join('\n')}\nIs it built? npm run build`);
      return 1;
    }
    const measured = await measure(bench, PLANS[scale]);
    report(values, scale, bench, judge(values.agent, measured, { node: NODE_ROW, parse: PARSE_ROW }));
    return failures(bench.tables).length ? 1 : 0;
  } finally {
    bench.close();
  }
}

function report({ agent, json }, scale, bench, rows) {
  const host = machine();
  const setting = `${agent}, ${scale} run, node ${host.node}, ${host.cores} cores, load ${host.load}`;
  console.log(renderVerdicts(setting, rows));
  const wrong = failures(bench.tables);
  if (wrong.length) console.log(`WRONG ANSWERS:\n${wrong.join('\n')}`);
  if (!json) return;
  const tables = bench.tables.map((table) => table.json());
  fs.writeFileSync(path.resolve(json), JSON.stringify({ ...host, scale, agent, rows, tables }));
}

const values = readOptions();
if (values.help) console.log(USAGE);
else process.exitCode = await run(values);
