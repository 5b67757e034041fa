import { closeSync, existsSync, fdatasync, fsync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { errorCode } from '../error-code.ts';
import { type Appended, compareAndAppend, compareTail, type FileTail, transcriptChanged } from './append.ts';
import { withLock } from './lock.ts';
import { linkRecords, type RecordDraft } from './records.ts';
import { storageFault } from './storage-fault.ts';
import type { TranscriptRecord } from './transcript.ts';

const syncData = promisify(fdatasync);
const syncAll = promisify(fsync);

/** What a reader knows of a transcript's end. */
export interface TailState extends FileTail {
  readonly endsWithNewline: boolean;
  /** `uuid` of the last whole record; the next one's parent. */
  readonly lastUuid: string | null;
}

export interface AppendOptions {
  /** Resolve only when the records would survive a power cut. */
  readonly durable: boolean;
}

/** The lock file of a transcript. */
export function lockPath(transcript: string): string {
  return `${transcript}.lock`;
}

/**
 * The writing end of one session's transcript. Nothing happens before the first append: a session without records has no
 * file.
 */
export class TranscriptStore {
  readonly path: string;
  #tail: TailState | null;
  /** Folders whose entries a durable append has to bring to the disk first. */
  #unsyncedFolders = new Set<string>();
  #queue: Promise<void> = Promise.resolve();
  /** Counts failures: what was queued before one was built on what it should have written. */
  #failures = 0;
  #lastFailure: unknown;

  /** `tail` is a reader's result, null for a session that has no file yet. */
  constructor(path: string, tail: TailState | null) {
    this.path = path;
    this.#tail = tail;
  }

  /** The file's end as this store knows it; null as long as there is no file. */
  get tail(): TailState | null {
    return this.#tail;
  }

  /**
   * Appends records in one write and resolves, with their links, when the write has returned. Calls take effect in
   * their order; when one fails, those that were already waiting behind it fail with it, and later ones are tried.
   * Throws `SessionFault`: `transcript_changed` (nothing was written; the session has to be loaded again),
   * `transcript_busy`, `invalid_params` (no regular file in its place) or `storage`. After `storage` the file is as it
   * was, except that records whose sync alone failed are in it.
   */
  append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<readonly TranscriptRecord[]> {
    const failuresAtCall = this.#failures;
    const appended = this.#queue.then(async () => {
      if (failuresAtCall !== this.#failures) throw this.#lastFailure;
      try {
        return await this.#appendNow(drafts, options.durable);
      } catch (error) {
        this.#failures++;
        this.#lastFailure = storageFault(this.path, error);
        throw this.#lastFailure;
      }
    });
    // The caller owns the failure; the queue only needs the order.
    this.#queue = appended.then(ignore, ignore);
    return appended;
  }

  /** Throws the `SessionFault` that an append would meet now because of what the file has become. Writes nothing. */
  async verify(): Promise<void> {
    await this.#queue;
    try {
      if (this.#tail !== null) compareTail(this.path, this.#tail);
    } catch (error) {
      throw storageFault(this.path, error);
    }
  }

  /** Resolves when every append called so far has ended, well or not. */
  settled(): Promise<void> {
    return this.#queue;
  }

  async #appendNow(drafts: readonly RecordDraft[], durable: boolean): Promise<readonly TranscriptRecord[]> {
    const records = linkRecords(drafts, this.#tail?.lastUuid ?? null);
    const last = records.at(-1);
    if (last === undefined) return records;
    const { fd, tail } = await this.#write(encodeLines(records));
    this.#tail = { ...tail, endsWithNewline: true, lastUuid: last.uuid };
    try {
      if (durable) await this.#sync(fd);
    } finally {
      closeSync(fd);
    }
    return records;
  }

  async #write(lines: Buffer): Promise<Appended> {
    const known = this.#tail;
    const write = () => withLock(lockPath(this.path), () => compareAndAppend(this.path, known, lines));
    const folder = dirname(this.path);
    if (known === null) this.#unsyncedFolders.add(folder);
    try {
      return await write();
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error;
      if (known !== null) throw transcriptChanged(this.path);
      for (const created of makeFolder(folder)) this.#unsyncedFolders.add(dirname(created));
      return await write();
    }
  }

  async #sync(fd: number): Promise<void> {
    await syncData(fd);
    for (const folder of this.#unsyncedFolders) {
      await syncFolder(folder);
      this.#unsyncedFolders.delete(folder);
    }
  }
}

function encodeLines(records: readonly TranscriptRecord[]): Buffer {
  return Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

/** Creates a folder, for its owner alone, with what is missing above it; answers what was created, the lowest first. */
function makeFolder(folder: string): string[] {
  const missing: string[] = [];
  // Not `recursive`: Node repeats it for ever where a folder is there but takes no entries, as /proc does.
  for (let at = folder; !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at);
  for (const path of missing.toReversed()) makeUnlessThere(path);
  return missing;
}

function makeUnlessThere(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const fd = openSync(folder, 'r');
  try {
    await syncAll(fd);
  } catch (error) {
    // Some file systems cannot sync a folder, and order their metadata themselves.
    if (errorCode(error) !== 'EINVAL') throw error;
  } finally {
    closeSync(fd);
  }
}

function ignore(): void {}
