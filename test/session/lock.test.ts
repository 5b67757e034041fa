import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { withLock } from '../../src/session/lock.ts';
import { type LockOwner, thisProcess } from '../../src/session/lock-owner.ts';
import { bundle, Child } from '../support/child.ts';
import type { Answer, Order } from './store-child.ts';

const scripts = mkdtempSync(join(tmpdir(), 'lock-child-'));
let script: string;
let folder: string;
let lock: string;
const children: Child[] = [];

beforeAll(() => {
  script = bundle(new URL('store-child.ts', import.meta.url), scripts);
});
afterAll(() => rmSync(scripts, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'));
  lock = join(folder, 'a.jsonl.lock');
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  rmSync(folder, { recursive: true, force: true });
});

function newChild(): Child {
  const child = new Child(script);
  children.push(child);
  return child;
}

/** Longer than a pause between two tries, much shorter than the real patience. */
const SOON = 60;
const taken = () => withLock(lock, () => 'taken', SOON);
const plant = (owner: Partial<LockOwner> | string) =>
  writeFileSync(lock, typeof owner === 'string' ? owner : JSON.stringify({ ...thisProcess(), ...owner }));
/** Above the greatest process number that Linux gives. */
const NOBODY = 4_194_305;

describe('what is found in the lock’s place', () => {
  test.each<[string, () => void]>([
    ['nothing', () => {}],
    ['an empty file', () => plant('')],
    ['a file of junk', () => plant('\0\0\0 no owner')],
    ['a cut owner', () => plant(JSON.stringify(thisProcess()).slice(0, 20))],
    ['JSON that is no owner', () => plant('[1]')],
    ['an owner without a host', () => plant('{"pid":1}')],
    ['a process group as the owner', () => plant({ pid: 0 })],
    ['an owner whose process is gone', () => plant({ pid: NOBODY })],
    ['an owner whose process number was given again', () => plant({ startTime: '1' })],
    ['a symbolic link', () => symlinkSync(join(folder, 'elsewhere'), lock)],
    [
      'an old lock of another host',
      () => {
        plant({ host: 'elsewhere' });
        utimesSync(lock, new Date(0), new Date(0));
      },
    ],
    [
      'an old lock from another container of this host',
      () => {
        plant({ namespace: 'pid:[1]', pid: NOBODY });
        utimesSync(lock, new Date(0), new Date(0));
      },
    ],
  ])('[TR-7] %s is taken over and nothing is left behind', async (_, prepare) => {
    writeFileSync(join(folder, 'elsewhere'), 'kept');
    prepare();
    await expect(taken()).resolves.toBe('taken');
    expect(readdirSync(folder)).toEqual(['elsewhere']);
    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toBe('kept');
  });

  test.each<[string, Partial<LockOwner>, string]>([
    ['a living process', {}, `process ${process.pid} on ${hostname()}`],
    ['another living process', { pid: process.ppid, startTime: null }, `process ${process.ppid} on ${hostname()}`],
    ['a fresh lock of another host', { host: 'elsewhere', pid: NOBODY }, `process ${NOBODY} on elsewhere`],
    [
      'a fresh lock from another container',
      { namespace: 'pid:[1]', pid: NOBODY },
      `process ${NOBODY} on ${hostname()}`,
    ],
  ])('[TR-7] %s is waited for and then named', async (_, owner, name) => {
    plant(owner);
    const before = readFileSync(lock, 'utf8');
    await expect(taken()).rejects.toMatchObject({ kind: 'transcript_busy', message: expect.stringContaining(name) });
    expect(readFileSync(lock, 'utf8')).toBe(before);
    expect(readdirSync(folder)).toEqual(['a.jsonl.lock']);
  });

  test('[TR-7] a lock that its owner gives back meanwhile is taken', async () => {
    plant({});
    const waiting = withLock(lock, () => 'taken', 10_000);
    rmSync(lock);
    await expect(waiting).resolves.toBe('taken');
  });

  test('[TR-7] a crash in the middle of a take-over, and of the take-over after it, holds nobody up', async () => {
    for (const path of [lock, `${lock}.break`, `${lock}.break.break`])
      writeFileSync(path, JSON.stringify({ ...thisProcess(), pid: NOBODY }));
    await expect(taken()).resolves.toBe('taken');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('[TR-7] a dead lock that a living process is taking over is left to it', async () => {
    plant({ pid: NOBODY });
    writeFileSync(`${lock}.break`, JSON.stringify(thisProcess()));
    await expect(taken()).rejects.toMatchObject({ kind: 'transcript_busy' });
    expect(existsSync(lock)).toBe(true);
  });
});

describe('the critical part', () => {
  test('[TR-7] finds the lock with its owner in it, and nothing once it is over', async () => {
    const owner = await withLock(lock, () => JSON.parse(readFileSync(lock, 'utf8')) as LockOwner);
    expect(owner).toStrictEqual(thisProcess());
    expect(readdirSync(folder)).toEqual([]);
  });

  test('[TR-7] gives the lock back when it throws', async () => {
    const failing = withLock(lock, () => {
      throw new Error('inside');
    });
    await expect(failing).rejects.toThrow('inside');
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('processes', () => {
  test('[TR-7] a lock whose owner is killed with it is waited for until then and taken over after', async () => {
    const child = newChild();
    await child.call<Answer>({ do: 'hold', lock } satisfies Order);
    await expect(taken()).rejects.toMatchObject({
      kind: 'transcript_busy',
      message: expect.stringContaining(`process ${child.process.pid}`),
    });
    await child.kill();
    await expect(taken()).resolves.toBe('taken');
  });

  test('[TR-7] many processes that die with the lock in their hands never hold it two at a time', async () => {
    const counter = join(folder, 'counter');
    writeFileSync(counter, '0');
    const [processes, count] = [8, 25];
    const exits = Array.from({ length: processes }, () => {
      const child = newChild();
      const exited = once(child.process, 'exit');
      child.process.send({ do: 'count_and_die', lock, counter, count } satisfies Order);
      return exited;
    });
    for (const [, signal] of await Promise.all(exits)) expect(signal).toBe('SIGKILL');
    expect(readFileSync(counter, 'utf8')).toBe(String(processes * (count + 1)));
  });

  test('[TR-7] processes that find a dead lock at every turn never hold it two at a time', async () => {
    const counter = join(folder, 'counter');
    const dead = join(folder, 'dead');
    writeFileSync(counter, '0');
    writeFileSync(dead, JSON.stringify({ ...thisProcess(), pid: NOBODY }));
    const [processes, count] = [4, 120];
    const order: Order = { do: 'count', lock, counter, count, dead };
    const answers = await Promise.all(Array.from({ length: processes }, () => newChild().call<Answer>(order)));
    expect(answers).toEqual(Array.from({ length: processes }, () => ({ ok: true })));
    expect(readFileSync(counter, 'utf8')).toBe(String(processes * count));
  });

  test.runIf(process.platform === 'linux')('[TR-7] a zombie owns nothing', async () => {
    // The shell becomes a program that never collects the child which the shell started.
    const parent = spawn('sh', ['-c', 'cat <&3 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
    });
    try {
      const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
      const pid = Number(line);
      await vi.waitFor(() => expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'), 5_000);
      (parent.stdio[3] as Writable).end();
      await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toContain(') Z '), 5_000);
      plant({ pid, startTime: null });
      await expect(taken()).resolves.toBe('taken');
    } finally {
      parent.kill('SIGKILL');
    }
  });
});
