import type { Links } from './links.ts';
import { ASSISTANT, NO_PARENT, SYSTEM, TOOL_RESULT } from './record-bytes.ts';

// Parents that are no record's index.
const ROOT = -1;
/** Not among the links that were read; earlier ones may hold it. */
const UNKNOWN = -2;
/** Not in the file. */
const MISSING = -3;

/** The records of the conversation, by their index in the links. */
export interface Chain {
  /** Ascending. */
  readonly records: Int32Array;
  /** Indexes whose parent is missing: what is before them is only the nearest record. */
  readonly gaps: ReadonlySet<number>;
  /**
   * `tool_result` records beside the chain, by the index of the assistant record that they may answer, in file order.
   * Whether they are needed shows when that record's calls are known.
   */
  readonly strays: ReadonlyMap<number, readonly number[]>;
  /** False when the first record's parent was not read. */
  readonly complete: boolean;
}

/**
 * The chain from record `tip` up through the parents. A parent is the nearest earlier record with that id, so an index
 * only ever falls: duplicate ids, cycles and forward references end like everything else.
 * `wholeFile` is false when earlier records were not read.
 */
export function chainTo(links: Links, tip: number, wholeFile: boolean): Chain {
  const gaps = new Set<number>();
  const parents = resolveParents(links, tip, wholeFile);
  let at = tip;
  let length = 0;
  const indexes = new Int32Array(tip + 1);
  while (at >= 0) {
    indexes[tip - length++] = at;
    const parent = parents[at] as number;
    if (parent === MISSING) {
      gaps.add(at);
      at = at - 1;
    } else at = parent;
  }
  const records = indexes.subarray(tip + 1 - length);
  return { records, gaps, strays: straysOf(links, tip, records, parents), complete: at !== UNKNOWN };
}

/** The index of each record's parent up to `tip`: negative where it has none, or none that was read. */
export function resolveParents(links: Links, tip: number, wholeFile: boolean): Int32Array {
  const { ids, parents } = links;
  const resolved = new Int32Array(tip + 1);
  let earlier: NearestById | undefined;
  for (let at = 0; at <= tip; at++) {
    const parent = parents[at] as number;
    if (parent === NO_PARENT) resolved[at] = ROOT;
    else if (ids[at - 1] === parent) resolved[at] = at - 1;
    else {
      earlier ??= new NearestById(ids, tip + 1, at);
      const found = earlier.find(parent);
      resolved[at] = found >= 0 ? found : wholeFile ? MISSING : UNKNOWN;
    }
    earlier?.add(at);
  }
  return resolved;
}

/** The nearest earlier index of each id: an open-addressing table of the indexes added so far. */
class NearestById {
  readonly #ids: Float64Array;
  readonly #slots: Int32Array;
  readonly #mask: number;

  constructor(ids: Float64Array, capacity: number, added: number) {
    this.#ids = ids;
    const size = 2 ** Math.ceil(Math.log2(capacity * 2 + 2));
    this.#slots = new Int32Array(size).fill(-1);
    this.#mask = size - 1;
    for (let at = 0; at < added; at++) this.add(at);
  }

  add(index: number): void {
    this.#slots[this.#slot(this.#ids[index] as number)] = index;
  }

  find(id: number): number {
    return this.#slots[this.#slot(id)] as number;
  }

  #slot(id: number): number {
    let slot = (id % 0x7fff_ffff) & this.#mask;
    for (;;) {
      const index = this.#slots[slot] as number;
      if (index === -1 || this.#ids[index] === id) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }
}

function straysOf(
  links: Links,
  tip: number,
  chain: Int32Array,
  parents: Int32Array,
): ReadonlyMap<number, readonly number[]> {
  const strays = new Map<number, number[]>();
  if (chain.length === tip + 1) return strays;
  const { types, count } = links;
  const onChain = new Uint8Array(count);
  for (const at of chain) onChain[at] = 1;
  // The assistant record whose calls a record may answer: nothing but results and system records lie between.
  const owners = new Int32Array(tip + 1);
  for (let at = 0; at <= tip; at++) {
    const type = types[at] as number;
    const parent = parents[at] as number;
    if (type === ASSISTANT) owners[at] = at;
    else owners[at] = (type === TOOL_RESULT || type === SYSTEM) && parent >= 0 ? (owners[parent] as number) : ROOT;
    if (type !== TOOL_RESULT || onChain[at] === 1) continue;
    const owner = owners[at] as number;
    if (owner < 0) continue;
    const known = strays.get(owner);
    if (known) known.push(at);
    else strays.set(owner, [at]);
  }
  return strays;
}
