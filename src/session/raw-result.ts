import { stringEnd, valueEnd } from './json-bytes.ts';
import type { SessionEvent } from './ports.ts';
import { type Head, plainStringEnd } from './record-bytes.ts';

/** A recorded tool result whose strings are slices of the file; valid as long as the buffer it was found in. */
export type RawResult = Extract<SessionEvent, { kind: 'raw_result' }>;

const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const COMMA_QUOTE = ascii(',"');
const COLON_QUOTE = ascii('":"');
const COLON = ascii('":');
const MESSAGE = ascii(',"message":{"role":"user","parts":[{"functionResponse":{"id":');
const NAME = ascii(',"name":');
const OUTPUT = ascii(',"response":{"output":');
const ERROR = ascii(',"response":{"error":');
const CALL_ID = ascii('}}}]},"toolCallResult":{"callId":');
const STATUS = ascii(',"status":');
const SUCCESS = ascii('"success"');
const RESULT_DISPLAY = ascii('resultDisplay');
const NEW_CONTENT = Buffer.from('"newContent":');

function ascii(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'));
}

/** Behind `literal` if it is at `at`, else -1. A position of -1 stays -1, so that steps can follow each other. */
function behind(bytes: Uint8Array, at: number, literal: Uint8Array): number {
  if (at === -1) return -1;
  for (let i = 0; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

/**
 * The result of a `tool_result` record in the recorded form, whose head has been matched in `bytes`, which end at `to`.
 * Checks every byte up to there, so that what is copied out is JSON (that it is UTF-8 is the caller's to check).
 * Undefined for any other form and for results that are shown as something else than their text.
 */
export function matchRawResult(bytes: Buffer, head: Head, to: number): RawResult | undefined {
  const idFrom = behind(bytes, skipFields(bytes, head.end, to), MESSAGE);
  const idTo = idFrom === -1 ? -1 : plainString(bytes, idFrom, to);
  const nameFrom = behind(bytes, idTo, NAME);
  const nameTo = nameFrom === -1 ? -1 : plainString(bytes, nameFrom, to);
  if (nameTo === -1 || !isPlainTool(bytes, nameFrom, nameTo)) return undefined;
  const outputFrom = behind(bytes, nameTo, OUTPUT);
  const textFrom = outputFrom === -1 ? behind(bytes, nameTo, ERROR) : outputFrom;
  const textTo = textFrom === -1 ? -1 : stringEnd(bytes, textFrom, to);
  const callIdFrom = behind(bytes, textTo, CALL_ID);
  if (callIdFrom === -1 || !isSame(bytes, callIdFrom, idFrom, idTo)) return undefined;
  const statusFrom = behind(bytes, callIdFrom + idTo - idFrom, STATUS);
  const statusTo = statusFrom === -1 ? -1 : plainString(bytes, statusFrom, to);
  if (statusTo === -1) return undefined;
  const display = matchDisplay(bytes, statusTo, to);
  if (display === undefined) return undefined;
  return {
    kind: 'raw_result',
    callIdJson: bytes.subarray(idFrom, idTo),
    nameJson: bytes.subarray(nameFrom, nameTo),
    textJson: bytes.subarray(textFrom, textTo),
    ...(display.length === 0 ? {} : { displayJson: display }),
    ok: outputFrom !== -1 && behind(bytes, statusFrom, SUCCESS) === statusTo,
    source: {
      recordId: bytes.toString('latin1', head.idFrom, head.idTo),
      timestamp: millisecondsOf(bytes.toString('latin1', head.timeFrom, head.timeTo)),
    },
  };
}

/** A record's time in milliseconds since the epoch; 0 for what is no time. */
export function millisecondsOf(timestamp: string): number {
  const time = Date.parse(timestamp);
  return Number.isNaN(time) ? 0 : time;
}

/** Behind the string of plain ASCII whose opening quote is at `at`; empty ones do not count. */
function plainString(bytes: Uint8Array, at: number, to: number): number {
  if (bytes[at] !== 0x22) return -1;
  const end = plainStringEnd(bytes, at + 1, to);
  return end <= at + 1 ? -1 : end + 1;
}

/** Behind the string fields between a record's head and its message. */
function skipFields(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  for (;;) {
    if (behind(bytes, at, MESSAGE) !== -1) return at;
    const key = behind(bytes, at, COMMA_QUOTE);
    const value = key === -1 ? -1 : behind(bytes, plainStringEnd(bytes, key, to), COLON_QUOTE);
    if (value === -1 || !isKnownField(bytes, key, value - COLON_QUOTE.length)) return -1;
    at = stringEnd(bytes, value - 1, to);
    if (at === -1) return -1;
  }
}

const FIELDS = ['provenance', 'cwd', 'version', 'gitBranch'].map(ascii);

/** Other fields, `subtype` or a second `uuid` for one, could change what the record means. */
function isKnownField(bytes: Uint8Array, from: number, to: number): boolean {
  return FIELDS.some((field) => behind(bytes, from, field) === to);
}

const SHOWN_OTHERWISE = ['"mcp__', '"todo_write"'].map(ascii);

function isPlainTool(bytes: Uint8Array, from: number, to: number): boolean {
  return SHOWN_OTHERWISE.every((name) => {
    const end = behind(bytes, from, name);
    return end === -1 || end > to;
  });
}

function isSame(bytes: Uint8Array, at: number, from: number, to: number): boolean {
  for (let i = 0; i < to - from; i++) if (bytes[at + i] !== bytes[from + i]) return false;
  return true;
}

const NO_DISPLAY = new Uint8Array(0);

/** The rest of the record, from behind the status: the display, empty where there is none; undefined for another form. */
function matchDisplay(bytes: Buffer, from: number, to: number): Uint8Array | undefined {
  let display: Uint8Array = NO_DISPLAY;
  let at = from;
  while (bytes[at] === COMMA) {
    const key = behind(bytes, at, COMMA_QUOTE);
    const keyEnd = key === -1 ? -1 : plainStringEnd(bytes, key, to);
    const value = behind(bytes, keyEnd, COLON);
    if (value === -1) return undefined;
    at = valueEnd(bytes, value, to);
    if (at === -1) return undefined;
    if (behind(bytes, key, RESULT_DISPLAY) === keyEnd) {
      if (display.length > 0) return undefined;
      display = bytes.subarray(value, at);
      // An edit's display becomes a diff, for which it has to be read.
      if (bytes[value] === OPEN_BRACE && display.length > 0 && hasNewContent(display)) return undefined;
    } else if (isRepeated(bytes, key, keyEnd)) return undefined;
  }
  return bytes[at] === CLOSE_BRACE && bytes[at + 1] === CLOSE_BRACE && at + 2 === to ? display : undefined;
}

function hasNewContent(display: Uint8Array): boolean {
  return Buffer.from(display.buffer, display.byteOffset, display.byteLength).includes(NEW_CONTENT);
}

const READ_ALREADY = ['callId', 'status'].map(ascii);

function isRepeated(bytes: Uint8Array, from: number, to: number): boolean {
  return READ_ALREADY.some((name) => behind(bytes, from, name) === to);
}
