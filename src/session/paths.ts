import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseSessionId } from './ids.ts';

/** The variables that say where sessions are kept. */
export type PathEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The folder that holds everything: `QWEN_RUNTIME_DIR`, else `QWEN_HOME`, else `~/.qwen`. An empty variable counts as
 * unset, a leading `~` is the home folder, a relative path is relative to the working directory.
 */
export function runtimeDir(env: PathEnvironment = process.env): string {
  const home = env['HOME'] || homedir();
  const configured = env['QWEN_RUNTIME_DIR'] || env['QWEN_HOME'];
  return configured === undefined || configured === '' ? join(home, '.qwen') : resolve(expandHome(configured, home));
}

function expandHome(path: string, home: string): string {
  if (path === '~') return home;
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

/** The name of a working directory's folder: every UTF-16 unit outside A-Z, a-z and 0-9 becomes `-`. */
export function projectSlug(cwd: string): string {
  return cwd.replace(/[^A-Za-z0-9]/g, '-');
}

/** The folder with the transcripts of a working directory. */
export function chatsDir(cwd: string, env: PathEnvironment = process.env): string {
  return join(runtimeDir(env), 'projects', projectSlug(resolve(cwd)), 'chats');
}

/** The transcript of a session. Throws `SessionFault` `unknown_session` for an id that is no UUID. */
export function chatPath(cwd: string, sessionId: string, env: PathEnvironment = process.env): string {
  return join(chatsDir(cwd, env), `${parseSessionId(sessionId)}.jsonl`);
}
