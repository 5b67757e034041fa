import type { TranscriptRecord } from './transcript.ts';

/**
 * Reading records as bytes. A record in the recorded form begins with its links, so that a reader finds its way without
 * parsing anything else; what is not in that form is parsed.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const SUBTYPE = ascii('subtype":"');
const COMMA_QUOTE = ascii(',"');
const COLON_QUOTE = ascii('":"');

/** How a glued record begins inside a line; as the inside of a JSON string its quotes would be escaped. */
export const RECORD_START = Buffer.from('{"uuid":"');

export const SYSTEM = 0;
export const USER = 1;
export const ASSISTANT = 2;
export const TOOL_RESULT = 3;
export const OTHER = 4;
export type TypeCode = typeof SYSTEM | typeof USER | typeof ASSISTANT | typeof TOOL_RESULT | typeof OTHER;

/** The hash of a `parentUuid` that is null. */
export const NO_PARENT = -1;

/** Where things are in the line that {@link matchHead} last matched; reused, because a file has a hundred thousand. */
export interface Head {
  /** 53-bit hashes; `parent` may be {@link NO_PARENT}. */
  id: number;
  parent: number;
  type: TypeCode;
  idFrom: number;
  idTo: number;
  timeFrom: number;
  timeTo: number;
  /** The byte behind the type's closing quote. */
  end: number;
}

export function newHead(): Head {
  return { id: 0, parent: 0, type: OTHER, idFrom: 0, idTo: 0, timeFrom: 0, timeTo: 0, end: 0 };
}

function ascii(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'));
}

function startsWith(bytes: Uint8Array, at: number, literal: Uint8Array): boolean {
  for (let i = 0; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return false;
  return true;
}

/** The closing quote of a plain ASCII string without escapes that begins at `from`; -1 where it is anything else. */
export function plainStringEnd(bytes: Uint8Array, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH || byte < 0x20 || byte > 0x7e) return -1;
  }
  return -1;
}

/** The 53-bit hash of an id. */
export function hashOf(id: string): number {
  let high = 0x811c9dc5;
  let low = 0x1b873593;
  for (let at = 0; at < id.length; at++) {
    const unit = id.charCodeAt(at);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x85ebca6b) ^ (low >>> 15);
  }
  return (high >>> 0) * 0x20_0000 + (low >>> 11);
}

/** Bytes in which a head is looked for; one with longer ids is read by parsing. */
const HEAD_BYTES = 320;
// A regular expression rather than a loop over bytes: a short file is read before V8 has compiled any loop.
const PLAIN = String.raw`[\x20\x21\x23-\x5b\x5d-\x7e]*`;
const HEAD = new RegExp(
  `^\\{"uuid":"(${PLAIN})","parentUuid":(?:null|"(${PLAIN})"),"sessionId":"${PLAIN}","timestamp":"(${PLAIN})","type":"(${PLAIN})"`,
);

/** Whether bytes `from` to `to` begin with a record's head in the recorded form; if so, `head` says where and what. */
export function matchHead(bytes: Buffer, from: number, to: number, head: Head): boolean {
  const match = HEAD.exec(bytes.toString('latin1', from, Math.min(to, from + HEAD_BYTES)));
  if (match === null) return false;
  const [text, id = '', parent, time = '', type = ''] = match;
  head.idFrom = from + ID_AT;
  head.idTo = head.idFrom + id.length;
  head.id = hashOf(id);
  head.parent = parent === undefined ? NO_PARENT : hashOf(parent);
  head.end = from + text.length;
  head.timeTo = head.end - '","type":""'.length - type.length;
  head.timeFrom = head.timeTo - time.length;
  head.type = typeCodeOf(type);
  return true;
}

const ID_AT = '{"uuid":"'.length;

/** The code of a record's type. */
export function typeCodeOf(type: string): TypeCode {
  switch (type) {
    case 'system':
      return SYSTEM;
    case 'user':
      return USER;
    case 'assistant':
      return ASSISTANT;
    case 'tool_result':
      return TOOL_RESULT;
    default:
      return OTHER;
  }
}

/**
 * The `subtype` of a record in the recorded form, whose head ends at `at`: the first of the string fields that follow.
 * Undefined where it is not among them.
 */
export function matchSubtype(bytes: Buffer, at: number, to: number): string | undefined {
  while (startsWith(bytes, at, COMMA_QUOTE)) {
    const key = at + COMMA_QUOTE.length;
    const found = startsWith(bytes, key, SUBTYPE);
    const keyEnd = plainStringEnd(bytes, key, to);
    if (keyEnd === -1 || !startsWith(bytes, keyEnd, COLON_QUOTE)) return undefined;
    const value = keyEnd + COLON_QUOTE.length;
    const end = plainStringEnd(bytes, value, to);
    if (end === -1) return undefined;
    if (found) return bytes.toString('latin1', value, end);
    at = end + 1;
  }
  return undefined;
}

/** A record from its bytes; undefined for what is no JSON object with a `uuid` and a `type`. */
export function parseRecord(bytes: Buffer, from: number, to: number): TranscriptRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8', from, to));
  } catch {
    return undefined;
  }
  return isObject(value) ? asRecord(value) : undefined;
}

/**
 * The one door through which a parsed line becomes a record: what readers rely on is made true here, a message that is
 * none is left out, so is a part that is no object.
 */
function asRecord(value: Record<string, unknown>): TranscriptRecord | undefined {
  const { uuid, parentUuid, type, timestamp, message } = value;
  if (typeof uuid !== 'string' || typeof type !== 'string') return undefined;
  const record = value as unknown as TranscriptRecord;
  const sound =
    (parentUuid === null || typeof parentUuid === 'string') &&
    typeof timestamp === 'string' &&
    (message === undefined || isMessage(message));
  if (sound) return record;
  const { message: _, ...rest } = record;
  return {
    ...rest,
    parentUuid: typeof parentUuid === 'string' ? parentUuid : null,
    timestamp: typeof timestamp === 'string' ? timestamp : '',
    ...(isObject(message) ? { message: soundMessage(message) } : {}),
  };
}

function isMessage(message: unknown): boolean {
  return isObject(message) && Array.isArray(message['parts']) && message['parts'].every(isSoundPart);
}

function isSoundPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  const { functionCall, functionResponse } = part;
  return (
    (functionCall === undefined || isObject(functionCall)) &&
    (functionResponse === undefined || isObject(functionResponse))
  );
}

function soundMessage(message: Record<string, unknown>): Record<string, unknown> & { parts: [] } {
  const parts = Array.isArray(message['parts']) ? message['parts'].filter(isSoundPart) : [];
  return { ...message, parts: parts as [] };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
