import type { Content, FunctionCall } from '@google/genai';

/** A call of the last model turn that has an id and no response. */
export interface DanglingCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * The calls that the end of the history leaves open: those of the last model turn, as long as nothing but function
 * responses follows it. A call that later text has overtaken cannot be closed in place any more; pairing does it on sending.
 */
export function danglingCalls(history: readonly Content[]): readonly DanglingCall[] {
  const at = history.findLastIndex(({ role }) => role === 'model');
  const answered = new Set<string | undefined>();
  for (const { parts } of history.slice(at + 1)) {
    for (const { functionResponse } of parts ?? []) {
      if (functionResponse === undefined) return [];
      answered.add(functionResponse.id);
    }
  }
  return idCalls(history[at]).filter(({ id }) => !answered.has(id));
}

/** The calls of one model turn that have an id, in order. */
export function idCalls(content: Content | undefined): readonly DanglingCall[] {
  return (content?.parts ?? []).flatMap(({ functionCall }) =>
    typeof functionCall?.id === 'string' && functionCall.id !== '' ? [named(functionCall)] : [],
  );
}

const named = ({ id, name, args }: FunctionCall): DanglingCall => ({
  id: id as string,
  name: name ?? '',
  args: args ?? {},
});
