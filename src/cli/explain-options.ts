import type { Options, PositionalOptions } from 'yargs';

export interface ExplainArguments {
  /** A session's id, or a path. */
  readonly session: string;
  /** The folder whose sessions are looked through first. */
  readonly cwd?: string;
  readonly json: boolean;
}

export const EXPLAIN_SESSION = {
  type: 'string',
  demandOption: true,
  describe: 'Id of a saved session, or the path of its file',
} as const satisfies PositionalOptions;

export const EXPLAIN_OPTIONS = {
  cwd: {
    type: 'string',
    requiresArg: true,
    describe: 'Folder whose sessions are looked through first (default: this one)',
  },
  json: { type: 'boolean', describe: 'Print JSON (see docs/EXPLAIN.md)' },
} as const satisfies Record<string, Options>;

export function explainArguments(values: Readonly<Record<string, unknown>>): ExplainArguments {
  const { session, cwd, json } = values;
  return { session: String(session), ...(typeof cwd === 'string' && { cwd }), json: json === true };
}
