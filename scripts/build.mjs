// Bundles the command line into dist/: the child's start path as one CommonJS file, and every module that is imported
// dynamically as a file of its own in dist/chunks, loaded on first use. On Node 20 one CommonJS file takes a fifth less CPU
// to start than the same code as ES modules, and V8's code cache another quarter less.
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { makeCodeCache } from './code-cache.mjs';
import { licencesOf } from './licenses.mjs';
import { generateValidators } from './validators.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');

/**
 * Writes what changed, each file whole: a process that was started from dist/ may be loading its chunks. With `failpoints`
 * the processes can be stopped at the moments that src/failpoint.ts names; what is shipped cannot.
 */
export async function buildDist({ dist = DIST, failpoints = false } = {}) {
  await generateValidators();
  const [entry, main] = [join(dist, 'cli.js'), join(dist, 'main.js')];
  const files = new Map();
  const outputs = new Map([[join(ROOT, 'src/cli.ts'), main]]);
  const define = { FAILPOINTS: String(failpoints) };
  // Grows while it is walked: a chunk may name further ones.
  const inputs = new Set();
  for (const [source, outfile] of outputs) {
    files.set(outfile, await bundle(source, outfile, { dist, outputs, define, inputs }));
  }
  const cache = join(dist, `main-${hashOf(files.get(main))}.cache`);
  define.CODE_CACHE = JSON.stringify(basename(cache));
  files.set(join(dist, 'package.json'), Buffer.from('{"type":"commonjs"}\n'));
  files.set(join(dist, 'LICENSES.txt'), Buffer.from(await licencesOf(ROOT, inputs)));
  // The entry last, so that it never names a file that is not there yet.
  files.set(entry, await bundle(join(ROOT, 'src/start.ts'), entry, { dist, define }));
  for (const [path, contents] of files) {
    if (path === entry) await makeCodeCache(main, cache);
    await replace(path, contents);
  }
  return new Set([...files.keys(), cache]);
}

const hashOf = (contents) => createHash('sha256').update(contents).digest('hex').slice(0, 16);

/** vitest's name for what runs once before all tests. */
export const setup = async () => {
  await buildDist();
};

/**
 * What runs for long and makes closures by the thousand: a name that is kept by force costs each of them 256 bytes, so these
 * keep their names by not being renamed.
 */
const LONG_LIVED = new Set(['serve.js']);

async function bundle(source, outfile, { dist, outputs = new Map(), define, inputs = new Set() }) {
  const longLived = LONG_LIVED.has(basename(outfile));
  const { outputFiles, metafile } = await build({
    metafile: true,
    absWorkingDir: ROOT,
    entryPoints: [source],
    outfile,
    write: false,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    // Dynamic imports become lazy requires, which need no module loader of another kind.
    supported: { 'dynamic-import': false },
    // CommonJS has no `import.meta`, which dependencies make their `require` from.
    define: { 'import.meta.url': '__fileUrl', ...define },
    banner: { js: "const __fileUrl=require('node:url').pathToFileURL(__filename).href;" },
    minifyWhitespace: true,
    minifySyntax: true,
    minifyIdentifiers: !longLived,
    keepNames: !longLived,
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [dynamicImports(dist, outfile, outputs), lazyBuiltins],
  });
  for (const input of Object.keys(metafile.inputs)) inputs.add(input);
  return outputFiles[0].contents;
}

/** What of ours is imported dynamically becomes an output of its own, named after its module. */
const dynamicImports = (dist, outfile, outputs) => ({
  name: 'dynamic-imports',
  setup(build) {
    build.onResolve({ filter: /^\..*\.ts$/ }, ({ kind, path, resolveDir }) => {
      if (kind !== 'dynamic-import') return undefined;
      const source = resolve(resolveDir, path);
      const output = join(dist, 'chunks', `${basename(source, '.ts')}.js`);
      outputs.set(source, output);
      return { path: `./${relative(dirname(outfile), output)}`, external: true };
    });
  },
});

/** vscode-jsonrpc requires these on import and uses them for pipes and sockets, which the child has none of. */
const lazyBuiltins = {
  name: 'lazy-builtins',
  setup(build) {
    build.onResolve({ filter: /^(crypto|net|child_process)$/ }, ({ path, importer }) =>
      importer.includes('vscode-jsonrpc') ? { path, namespace: 'lazy-builtin' } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'lazy-builtin' }, ({ path }) => ({
      contents: `module.exports = new Proxy({}, { get: (_, key) => process.getBuiltinModule('${path}')[key] });`,
    }));
  },
};

async function replace(path, contents) {
  const current = await readFile(path).catch(() => undefined);
  if (current !== undefined && Buffer.compare(current, contents) === 0) return;
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, contents);
  if (basename(path) === 'cli.js') await chmod(temporary, 0o755);
  await rename(temporary, path);
}

async function removeAllBut(wanted) {
  for (const entry of await readdir(DIST, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !wanted.has(path)) await rm(path);
  }
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await removeAllBut(await buildDist());
}
