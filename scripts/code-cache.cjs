// Runs a bundle as src/start.ts does, and on its exit writes the code cache with every function that the run compiled.
// Usage: node code-cache.cjs MAIN CACHE
const { readFileSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
const { Script } = require('node:vm');

const [, , path, cache] = process.argv;
const source = `(function(exports,require,module,__filename,__dirname){${readFileSync(path, 'latin1')}\n})`;
const script = new Script(source, { filename: path });
process.argv = [process.argv[0], path, '--acp', '--restore-ask-user-question', '--auth-type', 'scripted'];
process.on('exit', () => writeFileSync(cache, script.createCachedData()));
const main = { exports: {} };
script.runInThisContext()(main.exports, createRequire(path), main, path, dirname(path));
