import type { Peer } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: records of every form
type AnyRecord = any;

/** The ids of the calls that have a function response, one entry a response, in file order. */
export function responseIds(records: readonly AnyRecord[]): string[] {
  return partsOf(records).flatMap(({ functionResponse }) => functionResponse?.id ?? []);
}

/** The ids of the calls, in file order. */
export function callIds(records: readonly AnyRecord[]): string[] {
  return partsOf(records).flatMap(({ functionCall }) => functionCall?.id ?? []);
}

/** What kinds of records these are, the telemetry left out. */
export function kinds(records: readonly AnyRecord[]): string[] {
  return records
    .map(({ type, subtype }) => (subtype === undefined ? type : `${type}/${subtype}`))
    .filter((kind) => kind !== 'system/ui_telemetry');
}

/** Every update of a call, as `tool_call in_progress`, in order. */
export function cards(peer: Peer, sessionId: string, from = 0): string[] {
  return peer
    .updates(sessionId)
    .slice(from)
    .flatMap((update) =>
      update.sessionUpdate === 'tool_call' || update.sessionUpdate === 'tool_call_update'
        ? [`${update.sessionUpdate} ${update.status}`]
        : [],
    );
}

/** The messages that the child sent under this method, after the first `from` messages of the wire. */
export function sent(peer: Peer, method: string, from = 0): AnyRecord[] {
  return peer.wire
    .slice(from)
    .flatMap(({ dir, message }) => (dir === 'in' && 'method' in message && message.method === method ? [message] : []));
}

const partsOf = (records: readonly AnyRecord[]): AnyRecord[] => records.flatMap(({ message }) => message?.parts ?? []);

/** Where on the wire the n-th request of this method that the client sent was answered, and with what. */
export function answerTo(
  peer: Peer,
  method: string,
  nth: number,
): { readonly at: number; readonly message: AnyRecord } {
  const requests = peer.wire.filter(
    ({ dir, message }) => dir === 'out' && 'method' in message && message.method === method,
  );
  const id = (requests.at(nth)?.message as AnyRecord)?.id;
  const at = peer.wire.findIndex(({ dir, message }) => dir === 'in' && !('method' in message) && message.id === id);
  return { at, message: peer.wire[at]?.message };
}

/** Where on the wire the session's last update is; -1 without any. */
export function lastUpdateAt(peer: Peer, sessionId: string): number {
  return peer.wire.findLastIndex(
    ({ dir, message }: AnyRecord) =>
      dir === 'in' && message.method === 'session/update' && message.params.sessionId === sessionId,
  );
}
