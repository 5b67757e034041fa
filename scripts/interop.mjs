// Runs this program with the programs of others: installs them once into a cache of its own, builds dist/, runs
// test/interop, prints a table of what was checked, and sees to it that no process is left behind.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDist } from './build.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PROGRAMS = join(ROOT, 'test/interop/programs');
const CACHE = process.env.QWEN_ACP_INTEROP_CACHE ?? join(ROOT, '.cache/interop');
const RUN = randomUUID();
const INSTALL_MS = 240_000;
// The whole comparison starts the reference some hundreds of times.
const TESTS_MS = process.env.QWEN_ACP_COMPARISON === undefined ? 1_000_000 : 2_800_000;

/** Says what cannot be done, and ends. */
function give(up) {
  console.error(up);
  process.exit(1);
}

/** Installs the pinned programs, unless the cache holds exactly them. */
function install() {
  const files = ['package.json', 'package-lock.json'];
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(join(PROGRAMS, file)));
  const wanted = hash.digest('hex');
  const stamp = join(CACHE, 'installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted)
    return console.log(`programs: as installed in ${CACHE}`);
  console.log(`programs: installing into ${CACHE}`);
  mkdirSync(CACHE, { recursive: true });
  rmSync(stamp, { force: true });
  for (const file of files) copyFileSync(join(PROGRAMS, file), join(CACHE, file));
  // Scripts of packages are not run: nothing here needs one.
  const args = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--fetch-retries=1',
    '--loglevel=error',
  ];
  const { status } = spawnSync('npm', args, { cwd: CACHE, stdio: 'inherit', timeout: INSTALL_MS });
  if (status !== 0) {
    give(`The programs of others could not be installed (npm ended with ${status}). Without them there is nothing to test
against: run this where the npm registry can be reached, or name a folder that has them in QWEN_ACP_INTEROP_CACHE.`);
  }
  writeFileSync(stamp, wanted);
}

/** The Node that the reference needs: the one of the cache, else this one where it is new enough. */
function newerNode() {
  const ofCache = join(CACHE, `node_modules/node-linux-${process.arch}/bin/node`);
  if (process.platform === 'linux' && existsSync(ofCache)) return ofCache;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return process.execPath;
  return give(
    `The reference needs Node 22.13 or later, this is ${process.version}, and the cache has none for this machine.`,
  );
}

/** Runs the tests in a group of processes of their own; answers vitest's exit code. */
async function runTests(report, env) {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const config = join(ROOT, 'test/interop/vitest.config.ts');
  const args = ['run', '--config', config, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const child = spawn(process.execPath, [vitest, ...args, ...process.argv.slice(2)], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: 'inherit',
    detached: true,
  });
  const end = () => process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(() => {
    console.error(`the tests took more than ${TESTS_MS / 1_000} s`);
    end();
  }, TESTS_MS);
  process.once('SIGINT', end).once('SIGTERM', end);
  const code = await new Promise((resolve) => child.on('exit', (status) => resolve(status ?? 1)));
  clearTimeout(timer);
  return code;
}

/** What was checked, a row a test. */
function table(report) {
  const rows = JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status, duration }) => {
      const suite = relative(join(ROOT, 'test/interop'), name).replace('.test.ts', '');
      const check = [...ancestorTitles, title.replace(/^\[[^\]]*\] /, '')].join(': ');
      return `| ${suite} | ${check} | ${status} | ${((duration ?? 0) / 1_000).toFixed(1)} |`;
    }),
  );
  return ['| suite | check | result | s |', '|---|---|---|---|', ...rows].join('\n');
}

/** Ends, by their ids, the processes that bear this run's mark; answers what they were. */
function leftBehind() {
  const mark = `QWEN_ACP_INTEROP_RUN=${RUN}`;
  const found = [];
  for (const pid of existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []) {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(mark)) continue;
      found.push(`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')}`);
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended, or is somebody else's.
    }
  }
  return found;
}

install();
const env = { QWEN_ACP_INTEROP_RUN: RUN, QWEN_ACP_INTEROP_CACHE: CACHE, QWEN_ACP_INTEROP_NODE: newerNode() };
await buildDist();
const folder = mkdtempSync(join(tmpdir(), 'qwen-acp-interop-'));
const report = join(folder, 'report.json');
const code = await runTests(report, env);
if (existsSync(report)) console.log(`\n${table(report)}\n`);
rmSync(folder, { recursive: true, force: true });
const left = leftBehind();
if (left.length > 0) console.error(`left behind, and ended now:\n${left.join('\n')}`);
process.exit(code === 0 && left.length > 0 ? 1 : code);
