import { valueEnd } from './json-bytes.ts';
import { forEachLine, type OnLine } from './lines.ts';
import { hashOf, matchHead, NO_PARENT, newHead, parseRecord, RECORD_START, typeCodeOf } from './record-bytes.ts';
import type { TranscriptFile } from './transcript-file.ts';
import type { TranscriptRecord } from './transcript.ts';

const FIRST_CAPACITY = 1024;
/** So many places of a line may turn out not to begin a record before it is given up. */
const MAX_GLUE_ATTEMPTS = 8;

/** Where the records of a file are and how they are linked: about thirty bytes a record, nothing of their contents. */
export class Links {
  count = 0;
  /** Bytes from the start of the file. */
  offsets = new Float64Array(FIRST_CAPACITY);
  lengths = new Uint32Array(FIRST_CAPACITY);
  /** 53-bit hashes of `uuid` and `parentUuid`; the latter may be `NO_PARENT`. */
  ids = new Float64Array(FIRST_CAPACITY);
  parents = new Float64Array(FIRST_CAPACITY);
  types = new Uint8Array(FIRST_CAPACITY);
  /** Lines that are no records; a torn last line is not among them. */
  corrupt = 0;
  /** Those of them that were too long to be read. */
  oversized = 0;

  push(offset: number, length: number, id: number, parent: number, type: number): void {
    if (this.count === this.offsets.length) this.#grow();
    const at = this.count++;
    this.offsets[at] = offset;
    this.lengths[at] = length;
    this.ids[at] = id;
    this.parents[at] = parent;
    this.types[at] = type;
  }

  #grow(): void {
    const capacity = this.offsets.length * 2;
    this.offsets = grown(this.offsets, new Float64Array(capacity));
    this.lengths = grown(this.lengths, new Uint32Array(capacity));
    this.ids = grown(this.ids, new Float64Array(capacity));
    this.parents = grown(this.parents, new Float64Array(capacity));
    this.types = grown(this.types, new Uint8Array(capacity));
  }
}

function grown<T extends Float64Array | Uint32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** A line as {@link readLinks} judged it; the bytes are valid until the observer returns. */
export interface JudgedLine {
  readonly bytes: Buffer;
  /** From the start of the file. */
  readonly offset: number;
  readonly terminated: boolean;
  /** How many records it holds. */
  readonly records: number;
  readonly corrupt: boolean;
}

/**
 * Reads the links of every record from byte `start` of the file to its end. Where `start` is not 0, the line in which it
 * lies is left out. `observe` is told of each line that is short enough to be read.
 */
export async function readLinks(
  file: TranscriptFile,
  start: number,
  observe?: (line: JudgedLine) => void,
): Promise<Links> {
  const links = new Links();
  const head = newHead();
  let chunk = Number.NaN;
  let nextStart = 0;
  let cut = start > 0;
  const link: OnLine = (buffer, lineFrom, lineTo, offset, terminated) => {
    if (cut) {
      cut = false;
      return;
    }
    const from = trimmedStart(buffer, lineFrom, lineTo, offset);
    const to = trimmedEnd(buffer, from, lineTo);
    if (from === to) return;
    // The lines of one chunk come one after another: a search counts for all of them that end before what it found.
    if (chunk !== offset - lineFrom || nextStart <= from) {
      chunk = offset - lineFrom;
      nextStart = buffer.indexOf(RECORD_START, from + 1);
      if (nextStart === -1) nextStart = Number.POSITIVE_INFINITY;
    }
    const at = offset + from - lineFrom;
    const plain = terminated && nextStart >= to && buffer[to - 1] === CLOSE_BRACE && matchHead(buffer, from, to, head);
    if (plain) links.push(at, to - from, head.id, head.parent, head.type);
    else linkOddLine(links, buffer, from, to, at, terminated);
  };
  links.oversized = await forEachLine(file, start, observe ? observed(link, links, observe) : link);
  links.corrupt += links.oversized;
  return links;
}

function observed(link: OnLine, links: Links, observe: (line: JudgedLine) => void): OnLine {
  return (buffer, from, to, offset, terminated) => {
    const { count, corrupt } = links;
    link(buffer, from, to, offset, terminated);
    const bytes = buffer.subarray(from, to);
    observe({ bytes, offset, terminated, records: links.count - count, corrupt: links.corrupt > corrupt });
  };
}

/** A line that does not look like one whole record: another writer's, glued, torn, or damaged. */
function linkOddLine(
  links: Links,
  buffer: Buffer,
  from: number,
  to: number,
  offset: number,
  terminated: boolean,
): void {
  const { found, lost } = recordsIn(buffer, from, to);
  for (const { start, end, record } of found) {
    const parent = record.parentUuid === null ? NO_PARENT : hashOf(record.parentUuid);
    links.push(offset + start - from, end - start, hashOf(record.uuid), parent, typeCodeOf(record.type));
  }
  if (!terminated) return;
  if (found.length > 0) {
    if (lost) links.corrupt++;
    return;
  }
  const head = newHead();
  // Its body will not parse, but its links still show the way to what is before it.
  if (matchHead(buffer, from, to, head)) links.push(offset, to - from, head.id, head.parent, head.type);
  else links.corrupt++;
}

interface FoundRecord {
  readonly start: number;
  readonly end: number;
  readonly record: TranscriptRecord;
}

/** The whole records of a line, one behind another or behind torn ones, and whether something else is there, too. */
function recordsIn(buffer: Buffer, from: number, to: number): { found: FoundRecord[]; lost: boolean } {
  const found: FoundRecord[] = [];
  // Without what follows it, which a search for the next record would go on into.
  const line = buffer.subarray(0, to);
  let lost = false;
  let failures = 0;
  let at = from;
  while (at !== -1 && failures <= MAX_GLUE_ATTEMPTS) {
    const one = recordAt(line, at, to);
    if (one) found.push(one);
    else failures++;
    const behind = one ? one.end : at + 1;
    at = line.indexOf(RECORD_START, behind);
    lost ||= !one || (at === -1 ? behind < to : behind < at);
  }
  return { found, lost };
}

/** The record that begins at `start` and ends with the line, or before another one. */
function recordAt(buffer: Buffer, start: number, to: number): FoundRecord | undefined {
  const valued = valueEnd(buffer, start, to);
  // Where white space or depth hides its end, only the whole rest can be a record.
  const end = valued === -1 ? to : valued;
  // What ends before the line and has no head in the recorded form may be a part of a damaged record.
  if (end < to && !matchHead(buffer, start, end, newHead())) return undefined;
  const record = parseRecord(buffer, start, end);
  return record && { start, end, record };
}

const CLOSE_BRACE = 0x7d;
const BLANKS = new Set([0, 9, 13, 32]);

/** Skips a byte order mark at the file's start, and the zeros that a crash can leave where data was to be. */
function trimmedStart(buffer: Buffer, from: number, to: number, offset: number): number {
  let at = from;
  if (offset === 0 && buffer[at] === 0xef && buffer[at + 1] === 0xbb && buffer[at + 2] === 0xbf) at += 3;
  while (at < to && BLANKS.has(buffer[at] as number)) at++;
  return Math.min(at, to);
}

function trimmedEnd(buffer: Buffer, from: number, to: number): number {
  let at = to;
  while (at > from && BLANKS.has(buffer[at - 1] as number)) at--;
  return at;
}
