import { resolveParents } from './chain.ts';
import { type Conversation, readConversation } from './conversation.ts';
import type { DamageFound, HistoryEnd, Inspected, Place } from './explain.ts';
import { SessionFault } from './faults.ts';
import { HistoryFold } from './history.ts';
import type { JudgedLine } from './links.ts';
import { ASSISTANT, hashOf } from './record-bytes.ts';
import { readTailConversation } from './tail.ts';
import { type TranscriptFile, withTranscript } from './transcript-file.ts';
import { SUBTYPE, type TranscriptRecord } from './transcript.ts';

/** Places that are named of each kind of damage; more are counted only. */
const NAMED = 20;
const SEEN_SYSTEM: ReadonlySet<string> = new Set([SUBTYPE.chatCompression, SUBTYPE.rewind]);
/** As a session is opened with. */
const TAIL_RECORDS = 8;

/**
 * Reads a transcript as a load does, and where its damage is; writes nothing. What is held grows with the number of records,
 * not with their size. Throws `SessionFault`.
 */
export async function inspectTranscript(path: string): Promise<Inspected> {
  return await withTranscript(path, undefined, async (file) => {
    if (file === undefined) throw new SessionFault('unknown_session', `There is no file ${path}.`);
    const lines = new LineNotes();
    const conversation = await readConversation(file, (line) => lines.note(line));
    const { lastEntry, lastRecord } = await readTailConversation(file, TAIL_RECORDS);
    const place = (record: TranscriptRecord): Place => placeOf(record, conversation, lines);
    const end = await historyEnd(conversation);
    const seen = await systemSeen(conversation, place);
    const { last } = conversation;
    return {
      path,
      bytes: file.size,
      records: conversation.links.count,
      inConversation: conversation.length,
      ...(last && { sessionId: last.sessionId, cwd: last.cwd }),
      lastEntry,
      decidedBy: lastRecord && place(lastRecord),
      end,
      ...seen,
      abandonedBranches: abandonedBranches(conversation),
      damage: await damageOf(file, conversation, lines),
    };
  });
}

function placeOf(record: TranscriptRecord, { links }: Conversation, lines: LineNotes): Place {
  const index = links.ids.lastIndexOf(hashOf(record.uuid), links.count - 1);
  const { uuid, type, subtype } = record;
  return { uuid, line: lines.lineOf(index), type: subtype ?? type };
}

/** What of the history says how the last turn stands: from a model's turn on, as far back as one is needed. */
async function historyEnd(conversation: Conversation): Promise<HistoryEnd> {
  for (let from = conversation.length; ; ) {
    do from--;
    while (from > 0 && conversation.typeAt(from) !== ASSISTANT);
    const fold = new HistoryFold();
    // That turn may be one that cannot be read, and a compression behind it hold others.
    let spoke = false;
    if (from >= 0) {
      for await (const record of conversation.records({ from })) {
        fold.add(record);
        spoke ||= record.type === 'assistant';
      }
    }
    const { contents, lastResult, lastTurnState } = fold.finish();
    const begins = spoke && contents.some(({ role }) => role === 'model');
    if (from <= 0 || begins) return { contents, lastResult, lastTurnState };
  }
}

async function systemSeen(
  conversation: Conversation,
  place: (record: TranscriptRecord) => Place,
): Promise<Pick<Inspected, 'compressions' | 'rewinds'>> {
  const seen = { compressions: [] as Place[], rewinds: [] as Place[] };
  // Reads every record of the conversation, whose damage shows then.
  for await (const items of conversation.batches({ rawResults: true, system: SEEN_SYSTEM })) {
    for (const item of items) {
      if (item.kind !== 'record' || item.record.type !== 'system') continue;
      const list = item.record.subtype === SUBTYPE.rewind ? seen.rewinds : seen.compressions;
      if (list.length < NAMED) list.push(place(item.record));
    }
  }
  return seen;
}

/** Ends of branches that the conversation left: records that none follows, results that belong to its calls aside. */
function abandonedBranches({ links, chain }: Conversation): number {
  const tip = chain.records.at(-1) ?? -1;
  const followed = new Uint8Array(tip + 1);
  for (const parent of resolveParents(links, tip, true)) if (parent >= 0) followed[parent] = 1;
  for (const strays of chain.strays.values()) for (const stray of strays) followed[stray] = 1;
  return followed.subarray(0, Math.max(0, tip)).reduce((count, isFollowed) => count + 1 - isFollowed, 0);
}

async function damageOf(file: TranscriptFile, conversation: Conversation, lines: LineNotes): Promise<DamageFound> {
  const { links, chain, damage, unreadable } = conversation;
  const unreadableLines = [...unreadable].map((index) => lines.lineOf(index));
  const gaps: Place[] = [];
  for (const [at, index] of [...chain.records].entries()) {
    if (!chain.gaps.has(index) || gaps.length === NAMED) continue;
    const record = await conversation.recordAt(at);
    if (record !== undefined) gaps.push(placeOf(record, conversation, lines));
  }
  const duplicates = duplicateIndexes(links.ids.subarray(0, links.count));
  return {
    tornLastLine: lines.torn,
    noLastNewline: file.size > 0 && lines.unterminated,
    corruptLines: {
      count: damage.corruptLines,
      lines: [...lines.corrupt, ...unreadableLines].sort((a, b) => a - b).slice(0, NAMED),
    },
    oversizedLines: links.oversized,
    gaps: { count: damage.gaps, behind: gaps },
    duplicateUuids: { count: duplicates.length, lines: duplicates.slice(0, NAMED).map((index) => lines.lineOf(index)) },
    cycles: cyclesIn(links.ids.subarray(0, links.count), links.parents.subarray(0, links.count)),
    nulLines: lines.nul,
    byteOrderMark: lines.byteOrderMark,
    crlfLines: lines.crlf,
  };
}

/** Indexes of records whose id an earlier one has. */
function duplicateIndexes(ids: Float64Array): number[] {
  const sorted = ids.slice().sort();
  const repeated = new Set<number>();
  for (let at = 1; at < sorted.length; at++) if (sorted[at] === sorted[at - 1]) repeated.add(sorted[at]!);
  if (repeated.size === 0) return [];
  const met = new Set<number>();
  const found: number[] = [];
  for (const [index, id] of ids.entries()) {
    if (!repeated.has(id)) continue;
    if (met.has(id)) found.push(index);
    else met.add(id);
  }
  return found;
}

/** How many loops the parents make when each id is taken for the first record that bears it. */
function cyclesIn(ids: Float64Array, parents: Float64Array): number {
  const named = new Set<number>();
  // A loop needs a record that was named as a parent before it came; in an ordinary file there is none.
  const suspicious = ids.some((id, at) => named.add(parents[at]!).has(id));
  return suspicious ? loops(ids, parents) : 0;
}

function loops(ids: Float64Array, parents: Float64Array): number {
  const place = new Map<number, number>();
  for (const [index, id] of ids.entries()) if (!place.has(id)) place.set(id, index);
  const walks = new Uint32Array(ids.length);
  let count = 0;
  for (let start = 0; start < ids.length; start++) {
    let at: number | undefined = start;
    while (at !== undefined && walks[at] === 0) {
      walks[at] = start + 1;
      at = place.get(parents[at]!);
    }
    if (at !== undefined && walks[at] === start + 1) count++;
  }
  return count;
}

/** What is to be said of a file's lines; counted from 1, lines that are too long to be read left out. */
class LineNotes {
  torn = false;
  unterminated = false;
  byteOrderMark = false;
  nul = 0;
  crlf = 0;
  readonly corrupt: number[] = [];
  #lines = 0;
  #recordLines = new Uint32Array(1024);
  #records = 0;

  note({ bytes, offset, terminated, records, corrupt }: JudgedLine): void {
    this.#lines++;
    for (let count = records; count > 0; count--) this.#addRecord();
    if (corrupt && this.corrupt.length < NAMED) this.corrupt.push(this.#lines);
    if (bytes.includes(0)) this.nul++;
    if (bytes.at(-1) === 0x0d) this.crlf++;
    if (offset === 0 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) this.byteOrderMark = true;
    if (terminated) return;
    this.unterminated = true;
    this.torn = records === 0 && bytes.some((byte) => byte > 32);
  }

  lineOf(record: number): number {
    return this.#recordLines[record] ?? 0;
  }

  #addRecord(): void {
    if (this.#records === this.#recordLines.length) {
      const grown = new Uint32Array(this.#records * 2);
      grown.set(this.#recordLines);
      this.#recordLines = grown;
    }
    this.#recordLines[this.#records++] = this.#lines;
  }
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
