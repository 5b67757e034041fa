import type { RawResult } from './raw-result.ts';
import type { TranscriptRecord } from './transcript.ts';

/** One record of a conversation. `gap` says that the record it followed is lost: what came before is only the nearest. */
export type ConversationItem =
  | { readonly kind: 'record'; readonly record: TranscriptRecord; readonly gap: boolean }
  | { readonly kind: 'raw_result'; readonly result: RawResult; readonly gap: boolean };

/** The call id of a raw result, which is plain ASCII between quotes. */
export function idOf(result: RawResult): string {
  const json = result.callIdJson;
  return Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('latin1', 1, json.length - 1);
}
