import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ignores } from './ignores.ts';

/** Of one folder; what a folder has beyond is left out. */
const MAX_ENTRIES = 100_000;

interface Entry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
}

/**
 * The regular files below a folder, in the order of their names, without what `.gitignore` files exclude and git's own
 * folder. Links are not followed. Folders that cannot be read are passed over. Throws the signal's reason on abort.
 */
export async function* filesBelow(folder: string, outer: Ignores, signal: AbortSignal): AsyncGenerator<string> {
  const ignores = await outer.inside(folder, signal);
  const { entries } = await entriesOf(folder, signal).catch(() => {
    signal.throwIfAborted();
    return { entries: [] };
  });
  for (const { name, kind } of entries) {
    const path = join(folder, name);
    if ((kind !== 'file' && kind !== 'folder') || name === '.git' || ignores.ignores(path, kind === 'folder')) continue;
    if (kind === 'file') yield path;
    else yield* filesBelow(path, ignores, signal);
  }
}

/** By name. `more` when there are too many to give all. Throws the file call's error. */
export async function entriesOf(
  folder: string,
  signal: AbortSignal,
): Promise<{ readonly entries: Entry[]; readonly more: boolean }> {
  const entries: Entry[] = [];
  let more = false;
  for await (const entry of await opendir(folder, { bufferSize: 256 })) {
    signal.throwIfAborted();
    if (entries.length === MAX_ENTRIES) {
      more = true;
      break;
    }
    const kind = entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'other';
    entries.push({ name: entry.name, kind });
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { entries, more };
}
