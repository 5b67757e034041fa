#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';

/** Set by the build: the name of the code cache that was made of exactly this main.js. */
declare const CODE_CACHE: string;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`qwen-acp needs Node.js 20.19 or later; this is ${process.version}.\n`);
  process.exit(1);
}

/*
 * The executable: runs main.js with V8's code cache, which spares every start the compilation of the whole bundle, a
 * quarter of what starting Node takes. V8 itself refuses a cache that another version or other flags made, and compiles.
 */
const path = join(__dirname, 'main.js');
const source = `(function(exports,require,module,__filename,__dirname){${readFileSync(path, 'latin1')}\n})`;
const cachedData = read(join(__dirname, CODE_CACHE));
const script = new Script(source, { filename: path, ...(cachedData && { cachedData }) });
const main = { exports: {} };
script.runInThisContext()(main.exports, createRequire(path), main, path, __dirname);

function read(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    // It is only there where the build could make it; a start without it is slower and nothing else.
    return undefined;
  }
}
