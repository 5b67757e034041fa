// Process-tree accounting on Linux through /proc.
import fs from 'node:fs';

// CLK_TCK is 100 on every mainstream Linux.
const TICK_MS = 10;

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** The fields of /proc/<pid>/stat that the bench uses, or null when the process is gone. */
function statOf(pid) {
  const stat = read(`/proc/${pid}/stat`);
  if (!stat) return null;
  // The command name may hold spaces and brackets: fields are counted from the last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    ppid: +fields[1],
    pgrp: +fields[2],
    cpuMs: (+fields[11] + +fields[12]) * TICK_MS,
    childrenCpuMs: (+fields[13] + +fields[14]) * TICK_MS,
  };
}

/** Process ids of `root`, its descendants and everything in its process group. */
function tree(root) {
  const stats = new Map();
  const children = new Map();
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = statOf(name);
    if (!stat) continue;
    stats.set(+name, stat);
    children.set(stat.ppid, [...(children.get(stat.ppid) ?? []), +name]);
  }
  const seen = new Set();
  const walk = (pid) => {
    if (seen.has(pid) || !stats.has(pid)) return;
    seen.add(pid);
    for (const child of children.get(pid) ?? []) walk(child);
  };
  walk(root);
  for (const [pid, stat] of stats) if (stat.pgrp === root) walk(pid);
  return [...seen];
}

const kilobytes = (pattern, text) => +(pattern.exec(text ?? '')?.[1] ?? 0);

/**
 * CPU and memory of the tree under `root`. Peaks are VmHWM: `peakSumMB` counts shared pages once per process,
 * `pssSumMB` (now, not peak) counts them once.
 */
export function usage(root) {
  const total = { cpuMs: 0, peakMaxMB: 0, peakSumMB: 0, rssSumMB: 0, pssSumMB: 0, procs: 0 };
  for (const pid of tree(root)) {
    const stat = statOf(pid);
    const status = read(`/proc/${pid}/status`);
    if (!stat || !status) continue;
    const peak = kilobytes(/VmHWM:\s+(\d+)/, status) / 1024;
    total.cpuMs += stat.cpuMs + stat.childrenCpuMs;
    total.peakMaxMB = Math.max(total.peakMaxMB, peak);
    total.peakSumMB += peak;
    total.rssSumMB += kilobytes(/VmRSS:\s+(\d+)/, status) / 1024;
    total.pssSumMB += kilobytes(/^Pss:\s+(\d+)/m, read(`/proc/${pid}/smaps_rollup`)) / 1024;
    total.procs++;
  }
  return total;
}

/** Kills what was started under `root`, by id, children first. */
export function killTree(root) {
  for (const pid of tree(root).reverse()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
  }
}
