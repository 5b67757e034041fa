import { stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import ignore, { type Ignore } from 'ignore';
import { readWhole } from './local-files.ts';

const MAX_BYTES = 1024 * 1024;

interface Rules {
  readonly folder: string;
  readonly rules: Ignore;
}

/** The `.gitignore` files that speak of what is in one folder, the outermost first. */
export class Ignores {
  readonly #levels: readonly Rules[];

  private constructor(levels: readonly Rules[]) {
    this.#levels = levels;
  }

  /**
   * What the folders above say too, up to the repository's; nothing where they ignore the folder itself, as then it was
   * named on purpose.
   */
  static async around(
    folder: string,
    signal: AbortSignal,
  ): Promise<{ readonly ignores: Ignores; readonly named: boolean }> {
    const levels: Rules[] = [];
    for (let at = folder; !(await isRepository(at)) && dirname(at) !== at; ) {
      at = dirname(at);
      levels.unshift(...(await rulesOf(at, signal)));
    }
    const above = new Ignores(levels);
    const named = above.#ignoresAnyOnTheWayTo(folder);
    return { ignores: named ? new Ignores([]) : above, named };
  }

  /** With the folder's own file. */
  async inside(folder: string, signal: AbortSignal): Promise<Ignores> {
    const own = await rulesOf(folder, signal);
    return own.length === 0 ? this : new Ignores([...this.#levels, ...own]);
  }

  /** `path` is in the folder, directly. */
  ignores(path: string, isFolder: boolean): boolean {
    let ignored = false;
    for (const { folder, rules } of this.#levels) {
      const verdict = rules.test(relative(folder, path).split(sep).join('/') + (isFolder ? '/' : ''));
      if (verdict.ignored) ignored = true;
      else if (verdict.unignored) ignored = false;
    }
    return ignored;
  }

  #ignoresAnyOnTheWayTo(folder: string): boolean {
    const [outermost] = this.#levels;
    if (outermost === undefined) return false;
    for (let at = folder; at !== outermost.folder; at = dirname(at)) {
      const levels = new Ignores(this.#levels.filter((level) => at.startsWith(level.folder) && at !== level.folder));
      if (levels.ignores(at, true)) return true;
    }
    return false;
  }
}

async function isRepository(folder: string): Promise<boolean> {
  return stat(join(folder, '.git')).then(
    () => true,
    () => false,
  );
}

/** None where there is no such file, or none that can be read. */
async function rulesOf(folder: string, signal: AbortSignal): Promise<Rules[]> {
  try {
    const text = (await readWhole(join(folder, '.gitignore'), signal, MAX_BYTES)).toString('utf8');
    return [{ folder, rules: ignore().add(text) }];
  } catch {
    signal.throwIfAborted();
    return [];
  }
}
