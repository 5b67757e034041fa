import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { DaemonError } from './ports.ts';

/** Throws `DaemonError` 400 when a caller has another workspace in mind than this daemon's `cwd`. */
export function demandWorkspace(cwd: string, requested: string | undefined): void {
  if (requested === undefined || real(requested) === real(cwd)) return;
  throw new DaemonError(400, `This daemon serves the workspace "${cwd}" and no other, not "${requested}"`, {
    code: 'workspace_mismatch',
    details: { boundWorkspace: cwd, requestedWorkspace: requested },
  });
}

/** One folder has many names. */
function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
