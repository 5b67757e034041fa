import type { Content, Part } from '@google/genai';
import type { Model, ModelEvent, ModelRequest } from '../../src/session/ports.ts';

/** A request with the given contents, or with one user message of this text. */
export function modelRequest(contents: string | readonly Content[], signal?: AbortSignal): ModelRequest {
  return {
    contents: typeof contents === 'string' ? [{ role: 'user', parts: [{ text: contents }] }] : contents,
    systemInstruction: 'be brief',
    tools: [],
    signal: signal ?? new AbortController().signal,
  };
}

/** All that a model streams. */
export async function collect(model: Model, request: ModelRequest): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const some of model.stream(request)) events.push(...some);
  return events;
}

export function partsOf(events: readonly ModelEvent[]): Part[] {
  return events.flatMap((event) => (event.kind === 'part' ? [event.part] : []));
}

/** What a promise rejects with; fails when it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    (value) => {
      throw new Error(`resolved with ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}
