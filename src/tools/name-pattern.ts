import picomatch from 'picomatch';
import { refuseArgument } from './arguments.ts';
import { GuardedPattern } from './guarded-pattern.ts';

const MAX_LENGTH = 1000;

/** A glob for paths with `/` between their parts. `anyDepth`: one without `/` is about the last part alone. */
export class NamePattern {
  readonly #pattern: GuardedPattern;
  readonly #isAboutNames: boolean;

  /** Throws `ToolFault` for what is no glob. */
  constructor(glob: string, { anyDepth }: { readonly anyDepth: boolean }) {
    if (glob.length > MAX_LENGTH) refuseArgument(`A name pattern must have at most ${MAX_LENGTH} characters.`);
    this.#isAboutNames = anyDepth && !glob.includes('/');
    this.#pattern = new GuardedPattern(expressionOf(glob));
  }

  /** The indices of the paths that match. */
  async find(paths: readonly string[], signal: AbortSignal): Promise<number[]> {
    return this.#pattern.find(
      this.#isAboutNames ? paths.map((path) => path.slice(path.lastIndexOf('/') + 1)) : paths,
      signal,
    );
  }
}

function expressionOf(glob: string): RegExp {
  try {
    const expression = picomatch.makeRe(glob.replace(/^\.\//, ''), { dot: true });
    if (expression instanceof RegExp) return expression;
  } catch {
    // Told below.
  }
  return refuseArgument(`${JSON.stringify(glob)} is no name pattern.`);
}
