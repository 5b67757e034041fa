// A real daemon in a home of its own, for scripts that kill it, its agent process or both, or load it.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A temporary home and workspace, and the script that the model plays. */
export function createPlace(script) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-acp-daemon-')));
  const place = { root, home: join(root, 'home'), cwd: join(root, 'work'), failpoints: join(root, 'failpoints') };
  for (const folder of [place.home, place.cwd, place.failpoints]) mkdirSync(folder);
  place.script = join(root, 'script.json');
  writeFileSync(place.script, JSON.stringify(script));
  return place;
}

export const removePlace = (place) =>
  rmSync(place.root, { recursive: true, force: true, maxRetries: 30, retryDelay: 100 });

/** `entry` is the executable. */
export async function startDaemon(place, entry, { args = [] } = {}) {
  const { QWEN_RUNTIME_DIR: _, QWEN_CLI_ENTRY: __, ...env } = process.env;
  const daemon = spawn(
    process.execPath,
    [
      entry,
      'serve',
      '--port',
      '0',
      '--restore-ask-user-question',
      '--auth-type',
      'scripted',
      '--script',
      place.script,
      ...args,
    ],
    {
      cwd: place.cwd,
      env: {
        ...env,
        HOME: place.home,
        QWEN_HOME: place.home,
        QWEN_ACP_FAILPOINTS: place.failpoints,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const exited = new Promise((resolve) => daemon.once('exit', resolve));
  let stderr = '';
  daemon.stderr.setEncoding('utf8').on('data', (text) => {
    stderr = (stderr + text).slice(-20_000);
  });
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: daemon.stdout }).on('line', (line) => {
      const found = /listening on (\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    void exited.then((code) => reject(new Error(`the daemon ended (${code}) before it listened: ${stderr}`)));
  });
  return { url, pid: daemon.pid, exited, stderr: () => stderr };
}

/** The pids of a process's children. */
export function childrenOf(pid) {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

export const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch (error) {
    return error.code === 'ENOENT' && !existsSync('/proc/self') ? true : error.code === 'EPERM';
  }
};

/** One call; `{status, body}`, or undefined when the daemon was gone before it had answered. */
export async function call(daemon, method, path, { body, clientId, signal } = {}) {
  try {
    const response = await fetch(`${daemon.url}${path}`, {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(clientId !== undefined && { 'x-qwen-client-id': clientId }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  } catch {
    return undefined;
  }
}
