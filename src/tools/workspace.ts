import { readlink, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { isMissing } from '../error-code.ts';
import { ToolFault } from '../session/faults.ts';
import { faultOf } from './file-faults.ts';

/** The folders that file tools are confined to; a relative path starts at `cwd`. */
export interface Folders {
  readonly cwd: string;
  readonly roots: readonly string[];
}

/** A path that lies in the workspace. */
export interface Place {
  /** Absolute and normalised, as it was named: the name that the person's editor knows it by. */
  readonly path: string;
  /** Where it is once every link is followed, whether it exists or not. */
  readonly real: string;
}

const MAX_LINKS = 40;
const MAX_SHOWN = 300;

/**
 * The place of a path that a model named. Throws `ToolFault` `path_not_in_workspace` for what lies outside, be it by `..`,
 * an absolute path or a link, dangling ones included.
 */
export async function placeIn(folders: Folders, path: string): Promise<Place> {
  const oddity = oddityOf(path);
  if (oddity !== undefined) throw outside(folders, path, oddity);
  const named = resolve(folders.cwd, path);
  const real = await realPlace(named);
  for (const root of [folders.cwd, ...folders.roots]) {
    if (isWithin(await realPlace(root), real)) return { path: named, real };
  }
  throw outside(folders, path, real === named ? undefined : `it is really ${clip(real)}`);
}

/** The same path again, just before it is used. Throws when a link has led it elsewhere meanwhile. */
export async function stillAt(folders: Folders, place: Place): Promise<void> {
  const { real } = await placeIn(folders, place.path);
  if (real !== place.real) {
    throw new ToolFault('file_changed', `${clip(place.path)} is no longer the file it was when the call was checked.`);
  }
}

/** Follows every link on the way, and goes on by name where nothing exists any more. Throws `ToolFault`. */
export async function realPlace(path: string, links = 0): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) throw faultOf(error, path);
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const realParent = await realPlace(parent, links);
  // A link to what does not exist: a write would make it there.
  const target = await readlink(path).catch(() => undefined);
  if (target === undefined) return join(realParent, basename(path));
  if (links >= MAX_LINKS) throw new ToolFault('execution_failed', `Too many links on the way to ${clip(path)}.`);
  return realPlace(resolve(realParent, target), links + 1);
}

/** Both absolute. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Forms that mean one thing to a shell or another system and something else to the file calls. */
function oddityOf(path: string): string | undefined {
  if (path.includes('\0')) return 'it has a NUL character';
  if (path === '~' || /^~[^/\\]*[/\\]/.test(path)) return '"~" is not expanded';
  if (/^[/\\]{2}[?.][/\\]/.test(path)) return 'it names a device';
  if (process.platform === 'win32') return undefined;
  return /^([A-Za-z]:([/\\]|$)|\\\\)/.test(path) ? 'it is in the form of another system' : undefined;
}

function outside({ cwd, roots }: Folders, path: string, why: string | undefined): ToolFault {
  const reason = why === undefined ? '' : ` (${why})`;
  const allowed = [cwd, ...roots].map(clip).join(', ');
  return new ToolFault(
    'path_not_in_workspace',
    `${JSON.stringify(clip(path))} is not in the workspace${reason}. Use a path in: ${allowed}`,
  );
}

const clip = (path: string): string => (path.length <= MAX_SHOWN ? path : `${path.slice(0, MAX_SHOWN)}…`);
