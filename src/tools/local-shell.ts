import { exec } from 'node:child_process';
import type { Shell } from '../session/ports.ts';

export function localShell(): Shell {
  return {
    run: ({ command, cwd, timeoutMs }, _, signal) =>
      new Promise((resolve) =>
        exec(command, { cwd, timeout: timeoutMs, signal }, (error, output) =>
          resolve({ exitCode: error ? 1 : 0, signal: null, timedOut: false, output, truncated: false }),
        ),
      ),
  };
}
