// Bundles the command line into dist/: one small entry for the child's start path, everything heavier in chunks
// that are loaded on first use.
import { rm } from 'node:fs/promises';
import { build } from 'esbuild';
import { generateValidators } from './validators.mjs';

await generateValidators();
await rm('dist', { recursive: true, force: true });
await build({
  entryPoints: { cli: 'src/cli.ts' },
  outdir: 'dist',
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
