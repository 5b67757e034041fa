import type { Log } from '../log.ts';
import { Chat, type ChatEnd, EMPTY_END } from './chat.ts';
import { type Damage, readConversation } from './conversation.ts';
import { HistoryFold } from './history.ts';
import type { RecordContext } from './records.ts';
import { TranscriptStore } from './store.ts';
import { readTail, type Tail } from './tail.ts';
import { withTranscript } from './transcript-file.ts';

/** Records of the tail that are read to open a session: enough to find where it was and which prompt was its last. */
const TAIL_RECORDS = 8;
/** Damaged files that are remembered to have been warned of. */
const MAX_WARNED = 1_000;

export interface ChatsDeps {
  /** This program's version, as records have it. */
  readonly version: string;
  /** The git branch of a folder now; undefined outside a repository. */
  readonly gitBranch: (cwd: string) => string | undefined;
  readonly log: Log;
}

/** Makes chats, new or from a file's end, and says once of each file what of it cannot be read. */
export class Chats {
  readonly #deps: ChatsDeps;
  /** What was last said of a damaged file: a load, a prompt and the next load each read it and find the same. */
  readonly #warned = new Map<string, string>();

  constructor(deps: ChatsDeps) {
    this.#deps = deps;
  }

  /** A chat without records. */
  create(id: string, cwd: string, path: string): Chat {
    return this.#chat(id, cwd, new TranscriptStore(path, null), EMPTY_END);
  }

  /** The chat of a file, of which the end alone is read; undefined where there is none. Throws `SessionFault`. */
  async read(id: string, cwd: string, path: string): Promise<Chat | undefined> {
    return await withTranscript(path, undefined, async (file) => {
      if (file === undefined) return undefined;
      const tail = await readTail(file, { records: TAIL_RECORDS });
      // Of a longer file the tail knows only a part; whoever reads all of it says all of it.
      if (!tail.hasMore) this.warn(path, tail.damage);
      return this.#chat(id, cwd, new TranscriptStore(path, tail), endOf(tail));
    });
  }

  #chat(id: string, cwd: string, store: TranscriptStore, end: ChatEnd): Chat {
    return new Chat(this.context(id, cwd), store, end, () => this.#readHistory(store));
  }

  async #readHistory(store: TranscriptStore): Promise<HistoryFold> {
    return await withTranscript(store.path, store.tail?.size, async (file) => {
      const fold = new HistoryFold();
      if (file === undefined) return fold;
      const conversation = await readConversation(file);
      for await (const record of conversation.records()) fold.add(record);
      this.warn(store.path, conversation.damage);
      return fold;
    });
  }

  /** What every record of a session says. */
  context(sessionId: string, cwd: string): RecordContext {
    const { version, gitBranch } = this.#deps;
    return {
      sessionId,
      cwd,
      version,
      // A session outlives a checkout: each record says where it was written.
      get gitBranch() {
        return gitBranch(cwd);
      },
      newId: () => crypto.randomUUID(),
      now: () => new Date(),
    };
  }

  /** Warns of what of a file cannot be read, unless the same was said of it last. */
  warn(path: string, { corruptLines, gaps }: Damage): void {
    if (corruptLines === 0 && gaps === 0) return;
    const damage = `${corruptLines} lines cannot be read, ${gaps} records are missing`;
    if (this.#warned.get(path) === damage) return;
    if (this.#warned.size >= MAX_WARNED) this.#warned.clear();
    this.#warned.set(path, damage);
    this.#deps.log.warn(`${path} is damaged: ${damage}`);
  }
}

function endOf({ lastEntry, records }: Tail): ChatEnd {
  const fold = new HistoryFold();
  for (const record of records) fold.add(record);
  const { lastPromptTurn, cwd, gitBranch } = fold.finish();
  return { lastEntry, lastPrompt: lastPromptTurn, whereabouts: { cwd, gitBranch } };
}
