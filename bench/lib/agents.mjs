// Which agents there are, and how one is started.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AcpClient, INITIALIZE, sleep } from './acp.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** The agents of `file` that `only` names, in that order; without names those that are neither skipped nor lack a variable. */
export function readAgents(file, only) {
  const all = JSON.parse(fs.readFileSync(file, 'utf8')).agents;
  if (!only.length) return all.filter((agent) => !agent.skip && (agent.needs ?? []).every((name) => process.env[name]));
  return only.map((name) => {
    const agent = all.find((candidate) => candidate.name === name);
    if (!agent) throw new Error(`no agent "${name}" in ${file}`);
    return agent;
  });
}

export const homeOf = (bench, agent) => path.join(bench.work, 'home', agent.name);
export const qwenHomeOf = (bench, agent) => path.join(homeOf(bench, agent), agent.qwenHome ?? '.qwen');
export const supports = (agent, suite) => !agent.suites || agent.suites.includes(suite);

/** Replaces `${NAME}` by the bench's variables, then by the environment's. */
function substitute(bench, agent, text, extra = {}) {
  const variables = {
    NODE: process.execPath,
    QWEN_NODE: process.env.QWEN_NODE ?? process.execPath,
    BENCH,
    ROOT: path.dirname(BENCH),
    MODEL_URL: bench.model.openaiUrl,
    GEMINI_URL: bench.model.geminiUrl,
    CWD: bench.cwd,
    HOME: homeOf(bench, agent),
    ...extra,
  };
  return text.replace(/\$\{(\w+)\}/g, (_, name) => variables[name] ?? process.env[name] ?? '');
}

/** The whole environment of the agent: nothing else of ours reaches it. */
function environmentOf(bench, agent, extra) {
  const home = homeOf(bench, agent);
  fs.mkdirSync(home, { recursive: true });
  const own = Object.entries(agent.env ?? {}).map(([name, value]) => [name, substitute(bench, agent, value, extra)]);
  const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`;
  return { PATH, HOME: home, LANG: 'C.UTF-8', NO_COLOR: '1', ...Object.fromEntries(own) };
}

/** Starts the agent's child; with `restore` with the switch on. */
export function startAgent(bench, agent, { restore = false, onRequest } = {}) {
  const flags = restore ? (agent.restoreFlag ?? ['--restore-ask-user-question']) : [];
  const [program, ...words] = agent.cmd.map((word) => substitute(bench, agent, word));
  const profile = bench.options.profile ? ['--cpu-prof', `--cpu-prof-dir=${path.resolve(bench.options.profile)}`] : [];
  const command = [program, ...profile, ...words, ...flags];
  return new AcpClient(command, { env: environmentOf(bench, agent), cwd: bench.cwd, onRequest });
}

/** The command of the agent's HTTP daemon, and its whole environment. */
export function serveCommand(bench, agent) {
  return {
    command: agent.serve.map((word) => substitute(bench, agent, word)),
    env: environmentOf(bench, agent),
  };
}

/** Stops it: at once, or, when it is profiled, by a clean end, at which Node writes the profile. */
export async function stopAgent(bench, client) {
  if (bench.options.profile) await client.end();
  else await client.kill();
}

/**
 * One untimed start of each agent: file cache, first-run files, compile cache (written at a clean exit). Returns what
 * went wrong, a line an agent.
 */
export async function warmUp(bench) {
  const problems = [];
  for (const agent of bench.agents) {
    const client = startAgent(bench, agent);
    try {
      await client.request('initialize', INITIALIZE, 60_000);
      if (!agent.initOnly) await client.request('session/new', { cwd: bench.cwd, mcpServers: [] }, 60_000);
      await sleep(agent.warmMs ?? 300);
    } catch (error) {
      problems.push(`${agent.name} does not start: ${error.message}`);
    }
    await client.end();
  }
  return problems;
}
