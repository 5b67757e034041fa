/** A call of the model, as a provider's API carries it. */
export interface Call {
  /** Absent where the API gives none. */
  readonly id?: string;
  readonly name: string;
  readonly args: unknown;
}

/** What a tool gave back. */
export interface Result {
  readonly id?: string;
  readonly name?: string;
  readonly text: string;
}

/** Everything between two turns of the other side, whatever the number of messages. */
export interface Turn {
  readonly role: 'user' | 'model';
  readonly texts: readonly string[];
  readonly calls: readonly Call[];
  readonly results: readonly Result[];
}

export type Dialect = 'openai' | 'gemini' | 'anthropic';

/** A request to the model, the same for every provider's API. */
export interface ModelRequest {
  readonly dialect: Dialect;
  /** The names of the tools that it offers. */
  readonly tools: readonly string[];
  /** The conversation without the system prompt. */
  readonly turns: readonly Turn[];
  /** What the model has to reply to: the last turn of the user, empty where there is none. */
  readonly last: Turn;
  readonly streams: boolean;
  /** When it came, in ms of `performance.now()`. */
  readonly at: number;
  readonly body: unknown;
}

export const NOTHING: Turn = { role: 'user', texts: [], calls: [], results: [] };

/** Joins neighbours of one role. */
export function mergeTurns(turns: readonly Turn[]): Turn[] {
  const merged: Turn[] = [];
  for (const turn of turns) {
    const before = merged.at(-1);
    if (before?.role !== turn.role) merged.push(turn);
    else {
      merged[merged.length - 1] = {
        role: turn.role,
        texts: [...before.texts, ...turn.texts],
        calls: [...before.calls, ...turn.calls],
        results: [...before.results, ...turn.results],
      };
    }
  }
  return merged;
}

/** What the model has to reply to. */
export function lastOf(turns: readonly Turn[]): Turn {
  const last = turns.at(-1);
  return last?.role === 'user' ? last : NOTHING;
}
