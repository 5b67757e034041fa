import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { TIMESTAMP, TOOL_NAME, TRANSCRIPT } from '../meta/keys.ts';
import type { SessionEvent } from '../session/ports.ts';
import { type ReadEvent, sessionUpdate } from './updates.ts';

type RawResult = Extract<SessionEvent, { kind: 'raw_result' }>;

/** No outbound line is longer, its line feed included. Bytes. */
export const MAX_LINE = 32 << 20;
const CUT_NOTE = '\n[cut: too long to be shown]';
/** UTF-16 units of a text that is left of one that makes its line too long; escaped, one takes at most six bytes. */
const KEPT_TEXT = 4 << 20;
const BATCH = 256 << 10;

/** Collects lines in one buffer, so that many small ones become one write. */
export class FrameBatch {
  #buffer = Buffer.allocUnsafe(BATCH);
  #length = 0;

  /** Bytes. */
  get length(): number {
    return this.#length;
  }

  text(text: string): void {
    const most = text.length * 3;
    if (most > this.#buffer.length - this.#length) this.#reserve(Buffer.byteLength(text));
    this.#length += this.#buffer.write(text, this.#length);
  }

  bytes(bytes: Uint8Array): void {
    if (bytes.length > this.#buffer.length - this.#length) this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** What was collected; the batch is empty again and keeps no hold on it. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.allocUnsafe(BATCH);
    this.#length = 0;
    return taken;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length - this.#length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

/** Encodes the `session/update` notifications of one session, each as a line of JSON-RPC. */
export class UpdateFrames {
  readonly #prefix: string;
  readonly #cwd: string;
  readonly #rawPrefix: string;

  constructor(sessionId: string, cwd: string) {
    const params = `{"sessionId":${JSON.stringify(sessionId)},"update":`;
    this.#prefix = `{"jsonrpc":"2.0","method":"session/update","params":${params}`;
    this.#rawPrefix = `${this.#prefix}{"sessionUpdate":"tool_call_update","toolCallId":`;
    this.#cwd = cwd;
  }

  /** A live event's message, without a line feed; undefined where the client is shown nothing. */
  message(event: SessionEvent): string | undefined {
    const json = this.#json(event.kind === 'raw_result' ? readRawResult(event) : event);
    return json && `${this.#prefix}${json}}}`;
  }

  /** Adds the event's line to `batch`. Slices of a `raw_result` are copied before this returns. */
  append(event: SessionEvent, batch: FrameBatch): void {
    if (event.kind === 'raw_result' && rawLength(event) < MAX_LINE) this.#appendRaw(event, batch);
    else this.#appendRead(event.kind === 'raw_result' ? readRawResult(event) : event, batch);
  }

  /** The line of an update that was made already. */
  appendUpdate(update: SessionUpdate, batch: FrameBatch): void {
    batch.text(`${this.#prefix}${JSON.stringify(update)}}}\n`);
  }

  #appendRead(event: ReadEvent, batch: FrameBatch): void {
    const json = this.#json(event);
    if (json !== undefined) batch.text(`${this.#prefix}${json}}}\n`);
  }

  #json(event: ReadEvent): string | undefined {
    const update = sessionUpdate(event, this.#cwd);
    if (update === undefined) return undefined;
    const json = JSON.stringify(update);
    // Longer in bytes than in units only outside ASCII: a cheap test first.
    if (json.length * 3 <= MAX_LINE - FRAME || Buffer.byteLength(json) <= MAX_LINE - FRAME) return json;
    return JSON.stringify(sessionUpdate(cutEvent(event), this.#cwd));
  }

  #appendRaw({ callIdJson, nameJson, textJson, displayJson, ok, source }: RawResult, batch: FrameBatch): void {
    batch.text(this.#rawPrefix);
    batch.bytes(callIdJson);
    batch.text(ok ? RAW_COMPLETED : RAW_FAILED);
    batch.bytes(textJson);
    batch.text(RAW_NAME);
    batch.bytes(nameJson);
    const record = JSON.stringify(source.recordId);
    batch.text(
      `,"provenance":"builtin","${TIMESTAMP}":${source.timestamp},"${TRANSCRIPT}":{"sourceRecordIds":[${record}]}}`,
    );
    if (displayJson) {
      batch.text(',"rawOutput":');
      batch.bytes(displayJson);
    }
    batch.text('}}}\n');
  }
}

/** More than the bytes of a line around its update. */
const FRAME = 512;
const RAW_CONTENT = ',"content":[{"type":"content","content":{"type":"text","text":';
const RAW_COMPLETED = `,"status":"completed"${RAW_CONTENT}`;
const RAW_FAILED = `,"status":"failed"${RAW_CONTENT}`;
const RAW_NAME = `}}],"_meta":{"${TOOL_NAME}":`;

function rawLength({ callIdJson, nameJson, textJson, displayJson }: RawResult): number {
  return callIdJson.length + nameJson.length + textJson.length + (displayJson?.length ?? 0) + 2 * FRAME;
}

/** A raw result with its strings read, for those who need values. */
export function readRawResult(event: RawResult): ReadEvent {
  const { callIdJson, nameJson, textJson, displayJson, ok, source } = event;
  return {
    kind: 'result',
    callId: parse(callIdJson) as string,
    name: parse(nameJson) as string,
    ok,
    text: parse(textJson) as string,
    ...(displayJson ? { display: parse(displayJson) } : {}),
    source,
  };
}

function parse(json: Uint8Array): unknown {
  return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString());
}

/** An event that fits a line: long texts are cut, other long values left out, with a note. */
function cutEvent(event: ReadEvent): ReadEvent {
  switch (event.kind) {
    case 'text':
      return { ...event, text: cut(event.text) };
    case 'user_part':
      return { ...event, part: { text: event.part.text === undefined ? CUT_NOTE.trim() : cut(event.part.text) } };
    case 'result': {
      const { display: _, ...rest } = event;
      return { ...rest, text: cut(event.text) };
    }
    case 'call':
      return { ...event, args: { note: CUT_NOTE.trim() } };
    case 'progress':
      return 'text' in event.shown ? { ...event, shown: { text: cut(event.shown.text) } } : event;
    case 'usage':
    case 'cancelled':
    case 'context':
    case 'title':
      return event;
  }
}

function cut(text: string): string {
  if (text.length <= KEPT_TEXT) return text;
  const kept = text.slice(0, KEPT_TEXT);
  // Half of a surrogate pair would become a replacement character.
  return kept.replace(/[\ud800-\udbff]$/, '') + CUT_NOTE;
}
