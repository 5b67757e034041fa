import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { afterAll } from 'vitest';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

/** The built program with the tools of `test-tools.ts` in the place of its own; answers its command line's path. */
export function distWithTestTools(): string {
  const folder = mkdtempSync(join(tmpdir(), 'qwen-acp-dist-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(DIST, folder, { recursive: true });
  buildSync({
    entryPoints: [fileURLToPath(new URL('test-tools.ts', import.meta.url))],
    outfile: join(folder, 'chunks', 'toolset.js'),
    allowOverwrite: true,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
  });
  return join(folder, 'cli.js');
}

type Step = { readonly call: string; readonly args?: object };

/**
 * A model that makes these calls when it is told the name of a batch in double brackets, and says the responses it gets.
 */
export const callScript = (batches: Readonly<Record<string, readonly Step[]>>) => ({
  model: 'fake-model',
  rules: [
    { when: { response: true }, steps: [{ text: 'RESPONSE: {{response}}' }] },
    ...Object.entries(batches).map(([name, steps]) => ({ when: { text: `[[${name}]]` }, steps })),
    { steps: [{ text: 'PLAIN REPLY' }] },
  ],
});
