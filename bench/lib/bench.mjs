// One run of the bench: options, folders, the fake model, the agents and the tables so far.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readAgents } from './agents.mjs';
import { startFakeModel } from './fake-model.mjs';
import { Table } from './stats.mjs';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

export const DEFAULTS = {
  agents: path.join(PROJECT, 'bench', 'agents.json'),
  only: [],
  runs: 5,
  counts: [100, 1_000, 10_000],
  modes: ['load', 'resume', 'bulk', 'page', 'loadUpdates'],
  work: path.join(PROJECT, '.bench'),
  /** Text deltas of the long prompt turn, and their length. */
  deltas: 2_000,
  deltaLength: 6,
  /** Milliseconds between initialize and the timed request, and between two timed turns. */
  settle: 300,
  rest: 600,
  timeout: 180_000,
  /** A folder for CPU profiles of the agents (their command must begin with node). */
  profile: '',
};

/** `{options, work, cwd, model, agents, tables, table(title), say(text), close()}`. */
export async function openBench(given) {
  const options = { ...DEFAULTS, ...given };
  const work = path.resolve(options.work);
  const cwd = path.join(work, 'ws');
  fs.mkdirSync(cwd, { recursive: true });
  const agents = readAgents(options.agents, options.only);
  const model = await startFakeModel();
  const tables = [];
  const table = (title) => {
    tables.push(new Table(title));
    return tables.at(-1);
  };
  return {
    options,
    work,
    cwd,
    agents,
    model,
    tables,
    table,
    say: (text) => process.stderr.write(`${text}\n`),
    close: model.close,
  };
}

/** Every failed check of the run, one line each. */
export function failures(tables) {
  return tables.flatMap((table) =>
    [...table.fails].map(([row, reasons]) => `${table.title} / ${row}: ${reasons[0]} (x${reasons.length})`),
  );
}

/** What a reader needs to judge the figures. */
export function machine() {
  const load = os.loadavg()[0].toFixed(2);
  return {
    node: process.version,
    cores: os.cpus().length,
    cpu: os.cpus()[0]?.model ?? '',
    load,
    at: new Date().toISOString(),
  };
}

/** Runs a command to its end: `{ms, out}`; its exit code must be 0. */
export function runCommand(command, cwd) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const env = { PATH: process.env.PATH, LANG: 'C.UTF-8' };
    const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'], env, cwd });
    let out = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve({ ms: performance.now() - start, out });
      else reject(new Error(`${command.join(' ')} exited with ${code}`));
    });
  });
}

/** A script of bench/limits, its output parsed. */
export async function runLimit(bench, script, ...args) {
  const { out } = await runCommand(
    [process.execPath, path.join(PROJECT, 'bench', 'limits', script), ...args],
    bench.cwd,
  );
  return JSON.parse(out);
}
