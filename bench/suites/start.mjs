// Cold start: spawn, initialize, session/new, beside an empty Node.
import fs from 'node:fs';
import path from 'node:path';
import { INITIALIZE } from '../lib/acp.mjs';
import { startAgent, stopAgent, supports } from '../lib/agents.mjs';
import { runCommand } from '../lib/bench.mjs';

export const NODE_ROW = 'limit: node -e 0';

const COLUMNS = [
  { key: 'init', label: 'initialize ms', spread: true },
  { key: 'fresh', label: 'session/new ms from spawn', spread: true },
  { key: 'freshAlone', label: 'new alone ms' },
  { key: 'cpu', label: 'CPU ms at new' },
  { key: 'peak', label: 'peak RSS MB (sum)' },
  { key: 'pss', label: 'PSS MB' },
  { key: 'procs', label: 'processes' },
];

export async function startSuite(bench) {
  const table = bench.table('Cold start (spawn, initialize, session/new), warm file cache');
  const empty = path.join(bench.work, 'empty.mjs');
  fs.writeFileSync(empty, '');
  for (let round = 0; round < bench.options.runs; round++) {
    const node = await runCommand([process.execPath, '-e', '0'], bench.cwd);
    table.add(NODE_ROW, { init: node.ms, fresh: node.ms });
    const module = await runCommand([process.execPath, empty], bench.cwd);
    table.add('limit: node empty.mjs', { init: module.ms });
    for (const agent of bench.agents.filter((candidate) => supports(candidate, 'start'))) {
      await startOnce(bench, table, agent);
    }
  }
  bench.say(table.markdown(COLUMNS, { ratioTo: NODE_ROW, ratioColumn: 'init' }));
  return table;
}

async function startOnce(bench, table, agent) {
  const { timeout } = bench.options;
  const client = startAgent(bench, agent);
  try {
    const init = await client.request('initialize', INITIALIZE, timeout);
    const sample = { init: init.at - client.spawnedAt };
    let fault = initFault(init.result);
    if (!agent.initOnly) {
      const fresh = await client.request('session/new', { cwd: bench.cwd, mcpServers: [] }, timeout);
      if (typeof fresh.result.sessionId !== 'string') fault ??= 'no sessionId';
      sample.fresh = fresh.at - client.spawnedAt;
      sample.freshAlone = fresh.ms;
    }
    const usage = client.usage();
    Object.assign(sample, { cpu: usage.cpuMs, peak: usage.peakSumMB, pss: usage.pssSumMB, procs: usage.procs });
    if (client.junk.length) fault ??= `junk on stdout: ${client.junk[0].slice(0, 60)}`;
    if (fault) table.fail(agent.name, fault);
    else table.add(agent.name, sample);
  } catch (error) {
    table.fail(agent.name, error.message.slice(0, 160));
  }
  await stopAgent(bench, client);
}

function initFault(result) {
  if (result?.protocolVersion !== 1) return `protocolVersion ${result?.protocolVersion}`;
  return typeof result.agentCapabilities === 'object' ? null : 'no agentCapabilities';
}
