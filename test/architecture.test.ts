import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

interface Import {
  /** A path from `src/`, or a package. */
  readonly to: string;
  readonly typeOnly: boolean;
  /** Loaded when first used, not when the file is. */
  readonly dynamic: boolean;
}

interface SourceFile {
  /** From `src/`, such as `session/turn.ts`. */
  readonly path: string;
  /** Without comments. */
  readonly code: string;
  readonly imports: readonly Import[];
}

const IMPORT = /^(?:import|export)\b(\s+type\b)?[^;'"]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm;

function importsOf(path: string, code: string): Import[] {
  return [...code.matchAll(IMPORT)].map(([, type, from, bare, dynamic]) => {
    const specifier = from ?? bare ?? dynamic ?? '';
    const to = specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier;
    return { to, typeOnly: type !== undefined, dynamic: dynamic !== undefined };
  });
}

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');

const FILES: readonly SourceFile[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
  .map((path) => {
    const code = withoutComments(readFileSync(join(ROOT, 'src', path), 'utf8'));
    return { path, code, imports: importsOf(path, code) };
  });

/** Which files import what they must not, as `from -> to`. */
function offences(from: (path: string) => boolean, isWrong: (found: Import, path: string) => boolean): string[] {
  return FILES.filter(({ path }) => from(path)).flatMap(({ path, imports }) =>
    imports.filter((found) => isWrong(found, path)).map(({ to }) => `${path} -> ${to}`),
  );
}

const inFolder =
  (...folders: string[]) =>
  (path: string) =>
    folders.some((folder) => path.startsWith(`${folder}/`));
const named =
  (...paths: string[]) =>
  (path: string) =>
    paths.includes(path);
const isPackage = ({ to }: Import, ...names: string[]) =>
  names.some((name) => to === name || to.startsWith(`${name}/`));

const WIRE_HALF = [
  'ndjson',
  'lines',
  'envelope',
  'outbox',
  'connection',
  'serving',
  'rpc',
  'methods',
  'params',
  'errors',
];
const isWireHalf = named(...WIRE_HALF.map((name) => `acp/${name}.ts`));

/** Decisions: the same for the same values, and at once. */
const PURE = [
  ...[
    'approval',
    'call-result',
    'chain',
    'commands',
    'compression',
    'dangling',
    'eligibility',
    'explain',
    'history',
    'interruption',
    'model-turn',
    'notices',
  ],
  ...['page', 'pairing', 'question', 'question-tool', 'records', 'replay', 'replay-events', 'texts', 'transcript'],
  ...['turn-result', 'unsolicited'],
].map((name) => `session/${name}.ts`);
const PURE_WIRE = [
  ...['approval', 'content', 'elicitation', 'errors', 'frames', 'methods', 'modes', 'permission', 'plain'],
  ...['prompt-request', 'rpc'],
  'tool-cards',
  'updates',
];
const PURE_DAEMON = ['admission', 'mediator', 'queue', 'replay', 'replies', 'ring', 'votes'].map(
  (name) => `daemon/${name}.ts`,
);
const PURE_TOOLS = ['arguments', 'command-scope', 'line-window', 'output-buffer', 'text-edit'].map(
  (name) => `tools/${name}.ts`,
);
const isPure = (path: string) =>
  named(...PURE_DAEMON, ...PURE_TOOLS)(path) ||
  named(...PURE, ...PURE_WIRE.map((name) => `acp/${name}.ts`))(path) ||
  inFolder('meta')(path);

test('the rules speak of files that exist', () => {
  expect(FILES.length).toBeGreaterThan(50);
  expect(FILES.flatMap(({ imports }) => imports).length).toBeGreaterThan(200);
  const paths = FILES.map(({ path }) => path);
  expect(
    [...PURE, ...PURE_DAEMON, ...PURE_TOOLS, ...[...WIRE_HALF, ...PURE_WIRE].map((name) => `acp/${name}.ts`)].filter(
      (path) => !paths.includes(path),
    ),
  ).toEqual([]);
});

test('a session knows neither the wire, nor models, nor the daemon, and of packages types only', () => {
  const wrong = (found: Import) =>
    inFolder('acp', 'meta', 'daemon', 'cli', 'model', 'tools')(found.to) ||
    isPackage(found, 'vscode-jsonrpc') ||
    (/^[@a-z]/.test(found.to) && isPackage(found, '@agentclientprotocol/sdk', '@google/genai') && !found.typeOnly);
  expect(offences(inFolder('session'), wrong)).toEqual([]);
});

test('a model or tool knows of sessions the ports and the faults', () => {
  const wrong = ({ to }: Import) =>
    inFolder('acp', 'meta', 'daemon', 'cli')(to) ||
    (inFolder('session')(to) && !named('session/ports.ts', 'session/faults.ts')(to));
  expect(offences(inFolder('model', 'tools'), wrong)).toEqual([]);
});

test('the wire half knows no session, and vscode-jsonrpc is known where frames become calls only', () => {
  const wrong = ({ to }: Import) =>
    inFolder('session', 'model', 'tools', 'cli', 'daemon')(to) ||
    (inFolder('acp')(to) && !isWireHalf(to) && !to.startsWith('acp/generated/'));
  expect(offences(isWireHalf, wrong)).toEqual([]);
  const allowed = named('acp/ndjson.ts', 'acp/connection.ts', 'acp/errors.ts');
  expect(
    offences(
      (path) => !allowed(path),
      (found) => isPackage(found, 'vscode-jsonrpc'),
    ),
  ).toEqual([]);
});

test('a daemon and a child meet on the wire only', () => {
  const childHalf = (to: string) => inFolder('acp')(to) && !isWireHalf(to);
  expect(offences(inFolder('daemon'), ({ to }) => inFolder('session', 'model', 'tools')(to) || childHalf(to))).toEqual(
    [],
  );
  expect(offences(inFolder('acp', 'session', 'model', 'tools'), ({ to }) => inFolder('daemon')(to))).toEqual([]);
});

test('the conformance kit judges from outside: it shares no code with what it judges', () => {
  expect(offences(inFolder('conformance'), ({ to }) => !inFolder('conformance')(to) && to.includes('.ts'))).toEqual([]);
  const callers = ({ to }: Import) => inFolder('conformance')(to);
  expect(offences((path) => !inFolder('conformance', 'cli')(path), callers)).toEqual([]);
});

test('_meta keys are literal in one file, methods of the reference in another', () => {
  // What the conformance kit expects is spelled once more, so that a slip here is seen there.
  const homes = named('conformance/names.ts');
  const literal = (pattern: RegExp, home: string) =>
    FILES.filter(({ path, code }) => path !== home && !homes(path) && pattern.test(code)).map(({ path }) => path);
  expect(offences(inFolder('meta'), ({ to }) => !inFolder('meta')(to))).toEqual([]);
  expect(literal(/['"`]qwen\./, 'meta/keys.ts')).toEqual([]);
  expect(literal(/['"`]_?(qwen|craft)\//, 'acp/methods.ts')).toEqual([]);
});

test('decisions are pure: nothing of Node, nothing awaited', () => {
  expect(offences(isPure, ({ to }) => to.startsWith('node:'))).toEqual([]);
  expect(
    FILES.filter(({ path, code }) => isPure(path) && /\b(await|async|setTimeout|Date\.now)\b/.test(code)).map(
      ({ path }) => path,
    ),
  ).toEqual([]);
});

test('there are no barrel files', () => {
  const barrels = FILES.filter(({ path, code }) => /(^|\/)index\.ts$/.test(path) || /^export \*/m.test(code));
  expect(barrels.map(({ path }) => path)).toEqual([]);
});

test('what starts the child imports no provider, no SDK, no zod and no full yargs', () => {
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path)) return;
    reached.add(path);
    const file = FILES.find((one) => one.path === path);
    for (const { to, typeOnly, dynamic } of file?.imports ?? []) if (!typeOnly && !dynamic) visit(to);
  };
  visit('cli.ts');
  expect(reached.size).toBeGreaterThan(30);
  const sdks = ['@agentclientprotocol/sdk', '@google/genai', 'openai', '@anthropic-ai/sdk'];
  const heavy = [...sdks, 'zod', 'yargs', 'model/gemini.ts', 'model/openai.ts', 'model/anthropic.ts', 'cli/full.ts'];
  heavy.push('acp/toolbox.ts', 'acp/client-files.ts', 'acp/client-shell.ts');
  expect([...reached].filter((path) => heavy.includes(path) || inFolder('tools')(path))).toEqual([]);
});

test('the code map has every file in the row of its folder, and none that is gone', () => {
  const text = readFileSync(join(ROOT, 'docs/ARCHITECTURE.md'), 'utf8');
  const rows = [...text.matchAll(/^\| (`src\/[^|]*) \| ([^|]*) \|/gm)].map(([, where = '', what = '']) => ({
    places: [...where.matchAll(/`src\/([^`]+)`/g)].map(([, place]) => `${place}`),
    names: [...what.matchAll(/`([a-z][a-z-]*[*/]?)`/g)].map(([, name]) => `${name}`),
  }));
  const paths = FILES.map(({ path }) => path);
  // `name` is a file, `name/` a folder, `name-*` all that begin so.
  const means = (folder: string, name: string) => (path: string) =>
    /[*/]$/.test(name) ? path.startsWith(folder + name.replace('*', '')) : path === `${folder}${name}.ts`;
  const folders = rows.flatMap(({ places, names }) => {
    const folder = places.find((place) => place.endsWith('/')) ?? '';
    return names.map((name) => ({ name, isMeant: means(folder, name) }));
  });
  const isMapped = (path: string) =>
    rows.some(({ places }) => places.includes(path)) ||
    folders.some(({ isMeant }) => isMeant(path)) ||
    text.includes(`\`${path}\``);
  expect(rows.length).toBeGreaterThan(10);
  expect(paths.filter((path) => !isMapped(path))).toEqual([]);
  const files = rows.flatMap(({ places }) => places.filter((place) => place.endsWith('.ts')));
  expect(files.filter((place) => !paths.includes(place))).toEqual([]);
  const isThere = ({ name, isMeant }: (typeof folders)[number]) => paths.some(isMeant) || files.includes(`${name}.ts`);
  expect(folders.filter((named) => !isThere(named)).map(({ name }) => name)).toEqual([]);
});
