#!/usr/bin/env node
// Does the bench notice? The reference agent must pass every check, each deliberately wrong variant must fail the one
// that is named for it, and an agent that is right must be judged by its figures alone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readAgents } from './lib/agents.mjs';
import { DEFAULTS, openBench } from './lib/bench.mjs';
import { loadSuite } from './suites/load.mjs';
import { MODES } from './suites/load-modes.mjs';
import { promptSuite } from './suites/prompt.mjs';
import { startSuite } from './suites/start.mjs';

const quick = process.argv.includes('--quick');
const wrongAgents = JSON.parse(fs.readFileSync(DEFAULTS.agents, 'utf8')).agents.filter((agent) => agent.caughtBy);
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'acp-bench-selftest-'));
const bench = await openBench({
  work,
  only: ['ref-agent'],
  runs: quick ? 1 : 3,
  counts: quick ? [100] : [100, 300],
  deltas: quick ? 100 : 2_000,
  settle: 50,
  rest: 20,
  timeout: 15_000,
});
bench.say = () => {};

/** Runs one suite or mode with these agents; returns its tables. */
async function tablesOf(agents, name, counts = bench.options.counts) {
  const part = { ...bench, agents, options: { ...bench.options, counts } };
  if (MODES[name]) return [...(await loadSuite(part, [name])).values()];
  if (name === 'prompt') return Object.values(await promptSuite(part));
  return [await startSuite(part)];
}

async function referencePasses(name) {
  for (const table of await tablesOf(bench.agents, name)) {
    assert.deepEqual([...table.fails], [], `${name}: ref-agent must pass (${table.title})`);
    const rows = [...table.rows.keys()].filter((row) => row.startsWith('ref-agent'));
    assert.ok(rows.length > 0, `${name}: ref-agent must be measured (${table.title})`);
  }
}

async function wrongFails(agent) {
  const tables = await tablesOf(readAgents(DEFAULTS.agents, [agent.name]), agent.caughtBy, [100]);
  const reasons = tables.flatMap((table) => [...table.fails.values()].flat());
  assert.ok(reasons.length > 0, `${agent.name} must fail ${agent.caughtBy}`);
  assert.ok(
    !reasons.some((reason) => /no answer in|exited/.test(reason)),
    `${agent.name} is wrong, not broken: ${reasons}`,
  );
  console.log(`ok: ${agent.name} fails ${agent.caughtBy}: ${reasons[0]}`);
}

try {
  const names = quick
    ? ['start', 'load', 'resume', 'page', 'auq-resume+flag', 'prompt']
    : ['start', ...Object.keys(MODES), 'prompt'];
  for (const name of names) {
    await referencePasses(name);
    console.log(`ok: ref-agent passes ${name}`);
  }
  for (const agent of wrongAgents) await wrongFails(agent);
} finally {
  bench.close();
  fs.rmSync(work, { recursive: true, force: true });
}
