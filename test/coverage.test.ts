import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FINISHED, REQUIREMENTS } from './requirements.ts';

const ROOT = join(import.meta.dirname, '..');
const ID = /\b[A-Z]{2,3}-\d+\b/g;
const CASE = /\bK\d{3}\b/g;
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

type Citations = Map<string, Set<string>>;
const cite = (found: Citations, id: string, path: string) => found.set(id, (found.get(id) ?? new Set()).add(path));

/** Each id of this form that a test's title cites, with the files that do. */
function citations(form: RegExp): Citations {
  const found: Citations = new Map();
  for (const [path, text] of sources('test', '.test.ts')) {
    for (const [, title, row] of text.matchAll(CITATION)) {
      for (const [id] of (title ?? row ?? '').matchAll(form)) cite(found, id, path);
    }
  }
  return found;
}

const CITED = citations(ID);
for (const [path, text] of sources('bench', '.mjs')) {
  for (const [, id] of text.matchAll(BAR)) if (id) cite(CITED, id, path);
}

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

/**
 * Faults that people reported of programs like this one, with what would be right: `id`, `kind`, `input`, `happened`,
 * `right`. Where the design decides otherwise than `right`, the test that cites the case says so.
 */
const CASES: string[] = readFileSync(join(ROOT, 'test/fixtures/cases.jsonl'), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line).id);

test('every case is cited by a test, and every case that is cited exists', () => {
  const cited = citations(CASE);
  expect(CASES.length).toBeGreaterThan(60);
  expect(new Set(CASES).size).toBe(CASES.length);
  expect(CASES.filter((id) => !cited.has(id))).toEqual([]);
  expect([...cited.keys()].filter((id) => !CASES.includes(id))).toEqual([]);
});
