import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileAccess } from '../session/ports.ts';

export function localFiles(): FileAccess {
  return {
    readText: async (path) => await readFile(path, 'utf8').catch(() => undefined),
    async writeText(path, text) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    },
  };
}
