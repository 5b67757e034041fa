import type { ModelAnswer } from './ask-model.ts';
import { ProviderFault } from './faults.ts';
import type { SessionEvent, UsageMetadata } from './ports.ts';
import type { TurnHost } from './turn-host.ts';

/** The share of the context window above which the older part of a conversation is compressed. */
export const FULL = 0.7;

/** What a client is told of the context after an answer; undefined where the window or what it holds is not known. */
export function contextEvent(usage: UsageMetadata | undefined, size: number | undefined): SessionEvent | undefined {
  const used = usage?.promptTokenCount ?? usage?.totalTokenCount;
  if (!isCount(used) || !isCount(size) || size === 0) return undefined;
  return { kind: 'context', used, size };
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Whether a conversation whose last prompt took `used` tokens should be compressed before it is sent again. */
export function isFull(used: number | undefined, size: number | undefined): boolean {
  return used !== undefined && size !== undefined && used > FULL * size;
}

/**
 * Asks the model through `ask` and makes room in its context where there is none: before the question when the last one
 * took much of it, behind it when the provider refused. Once a turn, as the turn itself is never cut.
 */
export function withRoom<T extends ModelAnswer | 'stopped'>(
  ask: (host: TurnHost) => Promise<T>,
): (host: TurnHost) => Promise<T> {
  let made = false;
  const makeRoom = async (host: TurnHost): Promise<boolean> => {
    made = true;
    const { compressAutomatically } = await import('./compress.ts');
    return await compressAutomatically(host);
  };
  return async (host) => {
    if (!made && isFull((await host.chat.history()).lastPromptTokens, host.model.contextWindow)) await makeRoom(host);
    try {
      return await ask(host);
    } catch (error) {
      const overflow = error instanceof ProviderFault && error.kind === 'context_overflow';
      if (made || !overflow || !(await makeRoom(host))) throw error;
      return await ask(host);
    }
  };
}
