import type { Context } from './context.ts';
import type { Json } from './wire.ts';

/** A `must` that is not met is a failure; a `should` is a warning, and a failure only with `--strict`. */
export type Level = 'must' | 'should';

/** `core`: what every agent of its suite is expected to do. `better`: where qwen-acp promises more than qwen-code does. */
export type Profile = 'core' | 'better';

/**
 * What an agent must have for a check to say anything. `agent`: there is one to judge; a check with any other need of an
 * agent does not repeat it. `session`: it opens one without an account. `turn`: a prompt there has an
 * end, or gets to the kit's model. `model`: it asks that model. `question`: it offers `ask_user_question` to the model.
 * `shell`: it offers it a tool that runs commands and that the kit can script. The others are advertised in the answer to
 * `initialize`.
 *
 * Of a daemon: `daemon`: there is one. `served`: the kit starts it. `talking`: and its agent asks the kit's model. `asking`:
 * and offers it `ask_user_question`. `restoring`: and the command has the switch. `hung`: likewise, and the check takes one
 * of the questions that hang since the shared daemon was killed.
 */
export type Need =
  | 'agent'
  | 'daemon'
  | 'served'
  | 'talking'
  | 'asking'
  | 'restoring'
  | 'hung'
  | 'session'
  | 'turn'
  | 'model'
  | 'question'
  | 'shell'
  | 'load'
  | 'resume'
  | 'list'
  | 'close'
  | 'delete';

export interface Check {
  /** Unique in the kit, such as `ACP-INIT-1`. */
  readonly id: string;
  /** One sentence that is true of an agent which passes. */
  readonly requirement: string;
  /** Where it stands: a page of the protocol, or a requirement of qwen-acp. */
  readonly source: string;
  readonly level: Level;
  readonly profile: Profile;
  readonly needs?: readonly Need[];
  /** Returns when the requirement is met. Throws `Unmet` with the frame that decided, or `NotSaid` for no verdict. */
  run(context: Context): Promise<void>;
}

/** Checks that are run together, each with processes, a HOME and a model of its own. */
export interface Suite {
  readonly id: string;
  readonly title: string;
  readonly checks: readonly Check[];
}

/** What an agent turned out to be, before anything is judged. */
export interface Findings {
  /** The result of `initialize`; undefined where there is no agent. */
  readonly initialized: Json;
  /** The names of the tools that it offers the model. */
  readonly tools: readonly string[];
  /** The needs that it does not meet, with the status of checks that have them and the reason. */
  readonly lacks: ReadonlyMap<Need, { readonly status: Status; readonly reason: string }>;
}

export type Status = 'pass' | 'fail' | 'warn' | 'not advertised' | 'skipped';

/** What became of one check. */
export interface Row extends Pick<Check, 'id' | 'requirement' | 'source' | 'level' | 'profile'> {
  readonly suite: string;
  readonly status: Status;
  /** Why it did not pass; one line. */
  readonly reason?: string;
  /** The frame that decided, whole. */
  readonly frame?: string;
  /** How long it took, in ms. */
  readonly ms: number;
}

/** A check's columns without its code. */
export function describe(check: Check): Pick<Row, 'id' | 'requirement' | 'source' | 'level' | 'profile'> {
  const { id, requirement, source, level, profile } = check;
  return { id, requirement, source, level, profile };
}
