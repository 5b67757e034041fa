// Bundles the command line into dist/: one small entry for the child's start path, everything heavier in chunks
// that are loaded on first use.
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { generateValidators } from './validators.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');

/** Writes what changed, each file whole: a process that was started from dist/ may be loading its chunks. */
export async function buildDist() {
  await generateValidators();
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { cli: 'src/cli.ts' },
    outdir: 'dist',
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    minify: true,
    keepNames: true,
    legalComments: 'none',
    chunkNames: 'chunks/[name]-[hash]',
    banner: {
      js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  // The entry last, so that it never names a chunk that is not there yet.
  const files = outputFiles.toSorted((a, b) => Number(isEntry(a.path)) - Number(isEntry(b.path)));
  for (const { path, contents } of files) await replace(path, contents);
  return new Set(files.map(({ path }) => path));
}

/** vitest's name for what runs once before all tests. */
export const setup = async () => {
  await buildDist();
};

const isEntry = (path) => path === join(DIST, 'cli.js');

async function replace(path, contents) {
  const current = await readFile(path).catch(() => undefined);
  if (current !== undefined && Buffer.compare(current, contents) === 0) return;
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, contents);
  if (isEntry(path)) await chmod(temporary, 0o755);
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
