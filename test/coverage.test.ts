import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FINISHED, REQUIREMENTS } from './requirements.ts';

const ROOT = join(import.meta.dirname, '..');
const ID = /\b[A-Z]{2,3}-\d+\b/g;
/** A test's title: a quote and the ids in square brackets; or the ids that a row adds to the title of its table. */
const CITATION = /['"`]\[([^\]'"`]*)\]|\bids: '([^']*)'/g;
/** A bar of the bench: the id as a string of its own. */
const BAR = /'(PF-\d+)'/g;

function sources(folder: string, ending: string): [string, string][] {
  const paths = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => path.endsWith(ending))
    .map((path) => [join(folder, path), readFileSync(join(ROOT, folder, path), 'utf8')]);
}

/** Each id that a test or bar cites, with the files that do. */
function citations(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const cite = (id: string, path: string) => found.set(id, (found.get(id) ?? new Set()).add(path));
  for (const [path, text] of sources('test', '.test.ts')) {
    for (const [, title, row] of text.matchAll(CITATION)) {
      for (const [id] of (title ?? row ?? '').matchAll(ID)) cite(id, path);
    }
  }
  for (const [path, text] of sources('bench', '.mjs')) for (const [, id] of text.matchAll(BAR)) if (id) cite(id, path);
  return found;
}

const CITED = citations();

test('every requirement of a finished part is cited by a test, or by the bench', () => {
  const wanted = REQUIREMENTS.filter(({ part }) => FINISHED.includes(part)).map(({ id }) => id);
  expect(wanted.length).toBeGreaterThan(0);
  expect(wanted.filter((id) => !CITED.has(id))).toEqual([]);
});

test('every id that is cited exists', () => {
  const known = new Set(REQUIREMENTS.map(({ id }) => id));
  expect(known.size).toBe(REQUIREMENTS.length);
  const unknown = [...CITED].filter(([id]) => !known.has(id)).map(([id, paths]) => `${id} in ${[...paths].join(', ')}`);
  expect(unknown).toEqual([]);
});
