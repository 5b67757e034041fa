#!/usr/bin/env node
// Benchmarks any ACP agents: node bench/bench.mjs --suite start,load --agents FILE --only "a,b". See README.md.
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { warmUp } from './lib/agents.mjs';
import { DEFAULTS, failures, machine, openBench } from './lib/bench.mjs';
import { limitsSuite } from './suites/limits.mjs';
import { loadSuite } from './suites/load.mjs';
import { QUESTION_MODES } from './suites/load-modes.mjs';
import { promptSuite } from './suites/prompt.mjs';
import { startSuite } from './suites/start.mjs';

const SUITES = {
  start: startSuite,
  load: (bench) => loadSuite(bench, bench.options.modes),
  question: (bench) => loadSuite(bench, QUESTION_MODES),
  prompt: promptSuite,
  limits: limitsSuite,
};

const list = (text) => text.split(',').filter(Boolean);
const numbers = (text) => list(text).map(Number);
const READERS = {
  agents: String,
  only: list,
  runs: Number,
  counts: numbers,
  modes: list,
  work: String,
  deltas: Number,
};
Object.assign(READERS, { deltaLength: Number, settle: Number, rest: Number, timeout: Number, profile: String });

const optionName = (key) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function readOptions() {
  const options = { suite: { type: 'string', default: 'start,load,question,prompt,limits' }, out: { type: 'string' } };
  for (const key of Object.keys(READERS)) options[optionName(key)] = { type: 'string' };
  const { values } = parseArgs({ options });
  const given = {};
  for (const [key, read] of Object.entries(READERS)) {
    const text = values[optionName(key)];
    if (text !== undefined) given[key] = read(text);
  }
  return { suites: list(values.suite), out: values.out, given };
}

const { suites, out, given } = readOptions();
const bench = await openBench({ ...DEFAULTS, ...given });
if (suites.some((name) => name !== 'limits')) for (const problem of await warmUp(bench)) bench.say(problem);
for (const name of suites) {
  if (!SUITES[name]) throw new Error(`no suite "${name}": ${Object.keys(SUITES).join(', ')}`);
  const { node, load } = machine();
  bench.say(`\n## suite ${name} (node ${node}, load ${load})`);
  await SUITES[name](bench);
}
bench.close();
if (out) {
  const tables = bench.tables.map((table) => table.json());
  fs.writeFileSync(out, JSON.stringify({ ...machine(), argv: process.argv.slice(2), tables }));
}
const failed = failures(bench.tables);
bench.say(failed.length ? `CHECKS FAILED:\n${failed.join('\n')}` : 'all checks ok');
process.exitCode = failed.length ? 1 : 0;
