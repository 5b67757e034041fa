import { randomUUID } from 'node:crypto';
import type { Content, Part } from '@google/genai';
import { CWD, type Home, type Peer } from './peer.ts';

/** One question, as the recorded model asked it. */
export const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
};
export const FEATURES = {
  question: 'Which features?',
  header: 'Features',
  options: ['Alpha', 'Beta', 'Gamma'].map((label) => ({ label, description: `about ${label}` })),
  multiSelect: true,
};

/** A call of any tool; without an id where that is undefined. */
export const call = (id: string | undefined, name: string, args: unknown): Part => ({
  functionCall: { ...(id !== undefined && { id }), name, args: args as Record<string, unknown> },
});
export const asks = (id: string | undefined, ...questions: unknown[]): Part =>
  call(id, 'ask_user_question', { questions });

export const userSays = (text: string): Entry => ({ type: 'user', message: { role: 'user', parts: [{ text }] } });
export const modelSays = (...parts: Part[]): Entry => ({ type: 'assistant', message: { role: 'model', parts } });
export const toolAnswers = (id: string, response: { output: string } | { error: string }): Entry => ({
  type: 'tool_result',
  message: { role: 'user', parts: [{ functionResponse: { id, name: 'ask_user_question', response } }] },
  toolCallResult:
    'output' in response
      ? { callId: id, status: 'success', executionStatus: 'success' }
      : { callId: id, status: 'cancelled', executionStatus: 'not_started' },
});
export const system = (subtype: string, systemPayload: object = {}): Entry => ({
  type: 'system',
  subtype,
  systemPayload,
});

/** What makes a record its own; the rest is the same for all. */
export interface Entry {
  readonly type: string;
  readonly message?: Content;
  readonly [key: string]: unknown;
}

/** Places a session with these records, each linked to the one before; answers its id, a new one each time. */
export function place(home: Home, ...entries: readonly Entry[]): string {
  const sessionId = randomUUID();
  let parentUuid: string | null = null;
  const records = entries.map((entry, index) => {
    const uuid = randomUUID();
    const timestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString();
    const record = { uuid, parentUuid, sessionId, timestamp, cwd: CWD, version: '0.24.4', ...entry };
    parentUuid = uuid;
    return record;
  });
  home.write(sessionId, records);
  return sessionId;
}

/** Places a session whose last words are a model turn of these parts. */
export const dangling = (home: Home, ...parts: Part[]): string => place(home, userSays('go'), modelSays(...parts));

/** What of a session's disk tells how calls ended, in order: `status/executionStatus/errorType response` each. */
export function resultsOnDisk(home: Home, sessionId: string, cwd = CWD): string[] {
  return home.records(sessionId, cwd).flatMap(({ toolCallResult: result, message }) => {
    if (result === undefined) return [];
    const key = Object.keys(message.parts[0].functionResponse.response)[0];
    const { status, executionStatus, errorType } = result;
    const words = [status, executionStatus, errorType].filter((word) => word !== undefined);
    return [`${words.join('/')} ${key}`];
  });
}

/** The last status of each card that the client was shown of a session, in the order of the cards. */
export function cards(peer: Peer, sessionId: string): string[] {
  const statuses = new Map<string, string>();
  for (const update of peer.updates(sessionId)) {
    if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') continue;
    if (update.status) statuses.set(update.toolCallId, update.status);
  }
  return [...statuses.values()];
}

/** What the agent said in a session. */
export function saidIn(peer: Peer, sessionId: string): string {
  return peer
    .updates(sessionId)
    .flatMap((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? [update.content.text] : [],
    )
    .join('');
}
