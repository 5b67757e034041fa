import { isUtf8 } from 'node:buffer';
import { type Chain, chainTo } from './chain.ts';
import { type ConversationItem, idOf } from './conversation-item.ts';
import { type JudgedLine, type Links, readLinks } from './links.ts';
import { readBytes } from './lines.ts';
import { matchRawResult, type RawResult } from './raw-result.ts';
import {
  ASSISTANT,
  matchHead,
  matchSubtype,
  newHead,
  OTHER,
  parseRecord,
  SYSTEM,
  TOOL_RESULT,
} from './record-bytes.ts';
import type { TranscriptFile } from './transcript-file.ts';
import { SUBTYPE, type TranscriptRecord } from './transcript.ts';
import { readWindows } from './windows.ts';

/** What could not be read. */
export interface Damage {
  /** Lines that are no records, and records whose body cannot be read. */
  readonly corruptLines: number;
  /** Parents that are not in the file. */
  readonly gaps: number;
}

/** What of a conversation's records a reader wants. */
export interface Wanted {
  /** Tool results in the recorded form as slices of the file: {@link RawResult}. */
  readonly rawResults: boolean;
  /** System records of these subtypes only; `all` but the telemetry where it is undefined. */
  readonly system?: ReadonlySet<string>;
}

/** Records of the chain by their index, `to` exclusive. */
export interface Range {
  readonly from?: number;
  readonly to?: number;
}

/**
 * The records of a transcript's conversation: the chain from the last whole record up through the parents, and the tool
 * results beside it that answer its calls.
 */
export class Conversation {
  readonly file: TranscriptFile;
  /** The last whole record; undefined where there is none. */
  readonly last: TranscriptRecord | undefined;
  readonly #links: Links;
  readonly #chain: Chain;
  /** Lines of the conversation, or behind its end, whose bodies turned out to be no JSON. */
  readonly #unreadable = new Set<number>();

  constructor(file: TranscriptFile, links: Links, tip: Tip, wholeFile: boolean) {
    this.file = file;
    this.#links = links;
    this.last = tip.record;
    for (let at = tip.index + 1; at < links.count; at++) this.#unreadable.add(at);
    this.#chain = chainTo(links, tip.index, wholeFile);
  }

  /** All records of the file, those beside the conversation included. */
  get links(): Links {
    return this.#links;
  }

  get chain(): Chain {
    return this.#chain;
  }

  /** Indexes in the links of records whose bodies turned out to be no JSON, as far as they were read. */
  get unreadable(): ReadonlySet<number> {
    return this.#unreadable;
  }

  /** How many records the chain has, as far as the file was read. */
  get length(): number {
    return this.#chain.records.length;
  }

  /** False when the file was read from the middle and the chain goes on before it. */
  get complete(): boolean {
    return this.#chain.complete;
  }

  /** As far as it is known: the bodies of records show their damage only when they are read. */
  get damage(): Damage {
    return { corruptLines: this.#links.corrupt + this.#unreadable.size, gaps: this.#chain.gaps.size };
  }

  /** The type code of the chain's record at `index`. */
  typeAt(index: number): number {
    return this.#links.types[this.#chain.records[index]!]!;
  }

  /** The chain's record at `index`; undefined where it cannot be read. */
  async recordAt(index: number): Promise<TranscriptRecord | undefined> {
    const at = this.#chain.records[index];
    return at === undefined ? undefined : await readRecordAt(this.file, this.#links, at);
  }

  /** The bytes of the chain's record at `index`. */
  bytesAt(index: number): number {
    return this.#links.lengths[this.#chain.records[index]!]!;
  }

  /**
   * The conversation's records, in order, in batches. Slices in a batch are valid until the next one is asked for.
   */
  async *batches(wanted: Wanted, { from = 0, to = this.length }: Range = {}): AsyncGenerator<ConversationItem[]> {
    const records = this.#chain.records.subarray(from, to);
    const head = newHead();
    let open: OpenCalls | undefined;
    let gap = false;
    for await (const window of readWindows(this.file, this.#links, records)) {
      const items: ConversationItem[] = [];
      const end = window.length;
      const utf8 = !wanted.rawResults || isUtf8(window.buffer.subarray(0, end));
      for (let i = window.from; i < window.to; i++) {
        const at = records[i]!;
        const type = this.#links.types[at]!;
        if (open && type !== SYSTEM && type !== TOOL_RESULT && type !== OTHER) {
          items.push(...(await this.#strays(open)));
          open = undefined;
        }
        const start = this.#links.offsets[at]! - window.offset;
        const stop = start + this.#links.lengths[at]!;
        const item = stop <= end ? readItem(window.buffer, start, stop, type, wanted, utf8, head) : undefined;
        gap ||= this.#chain.gaps.has(at);
        if (item === undefined) this.#unreadable.add(at);
        if (item === undefined || item === SKIPPED) continue;
        items.push(item.kind === 'raw_result' ? { kind: 'raw_result', result: item, gap } : { ...item, gap });
        gap = false;
        if (type === ASSISTANT) open = this.#openCalls(at, item);
        else if (open) open.answer(item);
      }
      yield items;
    }
    if (open) yield await this.#strays(open);
  }

  /** The conversation's records, in order; all but the telemetry. */
  async *records(range: Range = {}): AsyncGenerator<TranscriptRecord> {
    for await (const batch of this.batches({ rawResults: false }, range)) {
      for (const item of batch) if (item.kind === 'record') yield item.record;
    }
  }

  #openCalls(at: number, item: RecordItem | RawResult): OpenCalls | undefined {
    const strays = this.#chain.strays.get(at);
    return strays && item.kind === 'record' ? new OpenCalls(item.record, strays) : undefined;
  }

  async #strays(open: OpenCalls): Promise<ConversationItem[]> {
    const items: ConversationItem[] = [];
    for (const at of open.strays) {
      if (open.done) break;
      const record = await readRecordAt(this.file, this.#links, at);
      if (record && open.answer({ kind: 'record', record })) items.push({ kind: 'record', record, gap: false });
    }
    return items;
  }
}

interface RecordItem {
  readonly kind: 'record';
  readonly record: TranscriptRecord;
}

const SKIPPED = Symbol('skipped');

function readItem(
  buffer: Buffer,
  from: number,
  to: number,
  type: number,
  wanted: Wanted,
  utf8: boolean,
  head: ReturnType<typeof newHead>,
): RecordItem | RawResult | typeof SKIPPED | undefined {
  if (type === SYSTEM && matchHead(buffer, from, to, head)) {
    const subtype = matchSubtype(buffer, head.end, to);
    if (subtype !== undefined && isUnwanted(subtype, wanted)) return SKIPPED;
  }
  if (type === TOOL_RESULT && wanted.rawResults && matchHead(buffer, from, to, head)) {
    const result = matchRawResult(buffer, head, to);
    if (result && (utf8 || isUtf8(buffer.subarray(from, to)))) return result;
  }
  const record = parseRecord(buffer, from, to);
  return record && { kind: 'record', record };
}

function isUnwanted(subtype: string, { system }: Wanted): boolean {
  return system ? !system.has(subtype) : subtype === SUBTYPE.uiTelemetry;
}

/** The calls of an assistant record beside which results lie off the chain. */
class OpenCalls {
  readonly strays: readonly number[];
  readonly #ids: Set<string>;

  constructor(record: TranscriptRecord, strays: readonly number[]) {
    this.strays = strays;
    this.#ids = new Set(record.message?.parts?.flatMap(({ functionCall }) => functionCall?.id || []));
  }

  get done(): boolean {
    return this.#ids.size === 0;
  }

  /** Whether the item answers a call that was still open. */
  answer(item: RecordItem | RawResult): boolean {
    let answered = false;
    for (const id of answeredIds(item)) answered = this.#ids.delete(id) || answered;
    return answered;
  }
}

function answeredIds(item: RecordItem | RawResult): string[] {
  if (item.kind === 'raw_result') return [idOf(item)];
  return item.record.message?.parts?.flatMap(({ functionResponse }) => functionResponse?.id || []) ?? [];
}

async function readRecordAt(file: TranscriptFile, links: Links, at: number): Promise<TranscriptRecord | undefined> {
  const length = links.lengths[at]!;
  const buffer = Buffer.allocUnsafe(length);
  const read = await readBytes(file, buffer, links.offsets[at]!, length);
  return read === length ? parseRecord(buffer, 0, length) : undefined;
}

/** The last whole record, and its index in the links; -1 where there is none. */
interface Tip {
  readonly index: number;
  readonly record: TranscriptRecord | undefined;
}

async function findTip(file: TranscriptFile, links: Links): Promise<Tip> {
  for (let index = links.count - 1; index >= 0; index--) {
    const record = await readRecordAt(file, links, index);
    if (record) return { index, record };
  }
  return { index: -1, record: undefined };
}

/** Reads the links of the whole file; `observe` is told of its lines. */
export async function readConversation(
  file: TranscriptFile,
  observe?: (line: JudgedLine) => void,
): Promise<Conversation> {
  const links = await readLinks(file, 0, observe);
  return new Conversation(file, links, await findTip(file, links), true);
}

/** Reads the links from byte `start` on; undefined where no whole record is there, though one may be before it. */
export async function readConversationFrom(file: TranscriptFile, start: number): Promise<Conversation | undefined> {
  if (start <= 0) return readConversation(file);
  const links = await readLinks(file, start);
  const tip = await findTip(file, links);
  return tip.record && new Conversation(file, links, tip, false);
}
