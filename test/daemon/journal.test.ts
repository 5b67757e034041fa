import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Journal, type JournalKey, journalDir, journalKey } from '../../src/daemon/journal.ts';
import type { Vote } from '../../src/daemon/ports.ts';
import { createLog } from '../../src/log.ts';
import { asking, COLOUR, PARTS, permitting } from '../support/questions.ts';
import { tempFolder } from '../support/temp.ts';

const BLUE: Vote = { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'Blue' } };
const DECLINED: Vote = { kind: 'cancelled' };
const MINUTE_MS = 60 * 1000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const keyOf = (request = asking()): JournalKey => {
  const key = journalKey(request);
  if (!key) throw new Error('the request asks nothing');
  return key;
};

function journals() {
  const dir = join(tempFolder(), 'qwen-acp', 'votes');
  const logged: string[] = [];
  const open = (now?: () => number) => {
    const log = createLog('warn', (line) => logged.push(line));
    const journal = new Journal(dir, log, now);
    onTestFinished(() => journal.close());
    return journal;
  };
  return { dir, logged, open };
}

/** What the methods of all of Node's file handles are taken from, so that a disk can be watched, or fail. */
async function fileHandles(): Promise<FileHandle> {
  const handle = await openFile(tempFolder(), 'r');
  onTestFinished(() => void vi.restoreAllMocks());
  await handle.close();
  return Object.getPrototypeOf(handle);
}

const diskFault = (code: string) => Object.assign(new Error(code), { code });

test('[BT-4] a vote is found by another process, for the same call and questions only', async () => {
  const { open } = journals();
  await open().record(keyOf(), BLUE);
  const other = open();
  expect(await other.find(keyOf())).toEqual(BLUE);
  expect(await other.find(keyOf(asking([PARTS])))).toBeUndefined();
  expect(await other.find(keyOf(asking([COLOUR], { callId: 'call-2' })))).toBeUndefined();
  expect(await other.find(keyOf(asking([COLOUR], { sessionId: 'session-2' })))).toBeUndefined();
});

test('[BT-4] what is not asked of the person does not count for what was asked', () => {
  const reordered = { ...COLOUR, options: COLOUR.options.map(({ label, description }) => ({ description, label })) };
  const single = { ...COLOUR, multiSelect: false };
  const fewer = { ...COLOUR, options: COLOUR.options.slice(1) };
  expect(keyOf(asking([reordered]))).toEqual(keyOf());
  expect(keyOf(asking([single]))).toEqual(keyOf());
  expect(keyOf(asking([fewer]))).not.toEqual(keyOf());
  expect(journalKey(permitting())).toBeUndefined();
});

test('[BT-4] a decline is kept as well, and the last vote of a call counts', async () => {
  const { open } = journals();
  const journal = open();
  await journal.record(keyOf(), BLUE);
  await journal.record(keyOf(), DECLINED);
  expect(await open().find(keyOf())).toEqual(DECLINED);
});

test('[BT-4] forgetting a session removes its votes, of earlier processes too, and no others', async () => {
  const { dir, open } = journals();
  const [first, second] = [open(), open()];
  await first.record(keyOf(), BLUE);
  await first.record(keyOf(asking([PARTS], { callId: 'call-2' })), DECLINED);
  await second.record(keyOf(asking([COLOUR], { sessionId: 'session-2' })), BLUE);
  await open().forgetSession('session-1');
  expect(readdirSync(dir)).toHaveLength(1);
  expect(await open().find(keyOf(asking([COLOUR], { sessionId: 'session-2' })))).toEqual(BLUE);
  await open().forgetSession('session-3');
});

test('[BT-4] the votes of one session are kept apart, and forgotten together', async () => {
  const { dir, open } = journals();
  const journal = open();
  const [colour, parts] = [keyOf(), keyOf(asking([PARTS]))];
  await journal.record(colour, BLUE);
  await journal.record(parts, DECLINED);
  expect(await open().find(colour)).toEqual(BLUE);
  expect(await open().find(parts)).toEqual(DECLINED);
  await journal.forgetSession('session-1');
  expect(readdirSync(dir)).toEqual([]);
});

test('[BT-4] what two daemons both know can be forgotten by both', async () => {
  const { dir, open } = journals();
  const [first, second] = [open(), open()];
  await first.record(keyOf(), BLUE);
  await second.find(keyOf());
  await first.forgetSession('session-1');
  await second.forgetSession('session-1');
  expect(readdirSync(dir)).toEqual([]);
});

test('[BT-4, BT-13] a journal that is asked only leaves no folder behind', async () => {
  const { dir, logged, open } = journals();
  expect(await open().find(keyOf())).toBeUndefined();
  await open().forgetSession('session-1');
  expect(existsSync(join(dir, '..'))).toBe(false);
  expect(logged).toEqual([]);
});

test('[BT-4] of votes and a forgetting at the same time those before it go and those after it stay', async () => {
  const { open } = journals();
  const journal = open();
  const [before, after] = [keyOf(), keyOf(asking([PARTS], { callId: 'call-2' }))];
  await Promise.all([
    journal.record(before, BLUE),
    journal.forgetSession('session-1'),
    journal.record(after, DECLINED),
  ]);
  expect(await journal.find(before)).toBeUndefined();
  expect(await journal.find(after)).toEqual(DECLINED);
  await journal.forgetSession('session-1');
  expect(await journal.find(after)).toBeUndefined();
});

test('[BT-4] a forgetting waits for every vote before it, those that wait themselves included', async () => {
  const { dir, open } = journals();
  const journal = open();
  const keys = ['call-1', 'call-2', 'call-3'].map((callId) => keyOf(asking([COLOUR], { callId })));
  const [first, ...others] = keys.map((key) => journal.record(key, BLUE));
  await first;
  await Promise.all([journal.forgetSession('session-1'), ...others]);
  expect(readdirSync(dir)).toEqual([]);
});

test('[BT-4] a vote that another daemon accepted is forgotten as well once it was found', async () => {
  const { dir, open } = journals();
  const [ours, other] = [open(), open()];
  await ours.record(keyOf(asking([COLOUR], { sessionId: 'session-2' })), BLUE);
  await other.record(keyOf(), BLUE);
  expect(await ours.find(keyOf())).toEqual(BLUE);
  await ours.forgetSession('session-1');
  expect(readdirSync(dir)).toHaveLength(1);
});

test('[BT-4, DM-12] its files are for their owner alone, and no id of a caller becomes a path', async () => {
  const { dir, open } = journals();
  await open().record(keyOf(asking([COLOUR], { sessionId: '../../etc/passwd', callId: '/../x' })), BLUE);
  const [name = ''] = readdirSync(dir);
  expect(name).toMatch(/^[0-9a-f]{32}\.[0-9a-f]{32}\.json$/);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, '..')).mode & 0o777).toBe(0o700);
  expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
});

test('[BT-4] a vote is answered for 30 days, then removed', async () => {
  const { dir, open } = journals();
  await open().record(keyOf(), BLUE);
  const later = (days: number) => () => Date.now() + days * DAY_MS;
  expect(await open(later(29)).find(keyOf())).toEqual(BLUE);
  expect(await open(later(31)).find(keyOf())).toBeUndefined();
  await open(later(31)).record(keyOf(asking([COLOUR], { sessionId: 'session-2' })), BLUE);
  expect(readdirSync(dir)).toHaveLength(1);
});

test('[BT-4] it is no longer answered for once the 30 days are over', async () => {
  const { open } = journals();
  const now = Date.now();
  await open(() => now).record(keyOf(), BLUE);
  expect(await open(() => now + 30 * DAY_MS - 1).find(keyOf())).toEqual(BLUE);
  expect(await open(() => now + 30 * DAY_MS).find(keyOf())).toBeUndefined();
});

test('[BT-4] what a crash left half written is removed, what another daemon is writing and every vote is not', async () => {
  const { dir, open } = journals();
  await open().record(keyOf(), BLUE);
  const [vote = ''] = readdirSync(dir);
  const aged = (name: string, minutes: number) => {
    writeFileSync(join(dir, name), readFileSync(join(dir, vote)));
    utimesSync(join(dir, name), new Date(), new Date(Date.now() - minutes * MINUTE_MS));
  };
  aged('crashed.tmp', 61);
  aged('writing.tmp', 59);
  utimesSync(join(dir, vote), new Date(), new Date(Date.now() - 61 * MINUTE_MS));
  const other = open();
  await other.record(keyOf(asking([COLOUR], { sessionId: 'session-2' })), BLUE);
  await other.forgetSession('session-2');
  expect(readdirSync(dir).sort()).toEqual([vote, 'writing.tmp'].sort());
});

test('[BT-4] what cannot be removed stops no vote, and is told', async () => {
  const { dir, logged, open } = journals();
  const stuck = join(dir, 'a-folder');
  mkdirSync(stuck, { recursive: true });
  utimesSync(stuck, new Date(), new Date(Date.now() - 31 * DAY_MS));
  await open().record(keyOf(), BLUE);
  expect(await open().find(keyOf())).toEqual(BLUE);
  expect(logged).toEqual([expect.stringContaining('old votes')]);
});

test('[BT-4] whatever is left of a damaged file is no vote, and the next one replaces it', async () => {
  const { dir, open } = journals();
  await open().record(keyOf(), BLUE);
  const [name = ''] = readdirSync(dir);
  const path = join(dir, name);
  const whole = readFileSync(path);
  for (let length = 0; length < whole.length - 1; length++) {
    truncateSync(path, length);
    expect(await open().find(keyOf())).toBeUndefined();
    writeFileSync(path, whole);
  }
  for (const junk of ['null', '[]', '{"v":1}', '\0\0\0', whole.toString().replace('"Blue"', '"Blue"}'), '{"v":2}']) {
    writeFileSync(path, junk);
    expect(await open().find(keyOf())).toBeUndefined();
  }
  for (const [found, instead] of [
    ['call-1', 'call-7'],
    ['"v":1', '"v":2'],
    [JSON.stringify(BLUE), 'null'],
    [JSON.stringify(BLUE), '"cancelled"'],
    ['"kind":"selected"', '"kind":"other"'],
    ['"optionId":"proceed_once"', '"optionId":5'],
  ] as const) {
    expect(whole.toString()).toContain(found);
    writeFileSync(path, whole.toString().replace(found, instead));
    expect(await open().find(keyOf())).toBeUndefined();
  }
  await open().record(keyOf(), DECLINED);
  expect(await open().find(keyOf())).toEqual(DECLINED);
});

test('[DM-12, BT-4] a damaged file is told of without a word of what was answered', async () => {
  const { dir, logged, open } = journals();
  await open().record(keyOf(), BLUE);
  const [name = ''] = readdirSync(dir);
  const whole = readFileSync(join(dir, name), 'utf8');
  writeFileSync(join(dir, name), whole.replace('"Blue"', 'Blue'));
  expect(await open().find(keyOf())).toBeUndefined();
  expect(logged).toEqual([expect.stringMatching(/journal of votes cannot be read.*damaged/)]);
  expect(logged.join()).not.toContain('Blue');
});

test('[BT-4] two daemons that accept at once leave one whole vote', async () => {
  const { dir, open } = journals();
  const [first, second] = [open(), open()];
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).record(keyOf(), index % 2 ? BLUE : DECLINED)),
  );
  expect([BLUE, DECLINED]).toContainEqual(await open().find(keyOf()));
  expect(readdirSync(dir)).toHaveLength(1);
});

test('[BT-4] a vote that cannot be written is refused, and the next that can be is kept', async () => {
  const { dir, open } = journals();
  writeFileSync(join(dir, '..', '..', 'qwen-acp'), 'in the way');
  const journal = open();
  await expect(journal.record(keyOf(), BLUE)).rejects.toThrow();
  rmSync(join(dir, '..'));
  await journal.record(keyOf(), BLUE);
  expect(await open().find(keyOf())).toEqual(BLUE);
  rmSync(dir, { recursive: true });
  await journal.record(keyOf(), BLUE).catch(() => journal.record(keyOf(), BLUE));
  expect(await open().find(keyOf())).toEqual(BLUE);
});

test('[BT-4, TR-5] a vote is accepted when its file, its name and the names of its folders are on disk', async () => {
  const { dir, open } = journals();
  const handles = await fileHandles();
  const { sync, datasync } = handles;
  /** The files' sizes, and the names of each folder, as they were when a sync that has ended began. */
  const sizes = new Set<number>();
  const names = new Map<number, Set<string>>();
  vi.spyOn(handles, 'datasync').mockImplementation(async function (this: FileHandle) {
    const { size } = await this.stat();
    await datasync.call(this);
    sizes.add(size);
  });
  vi.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
    const { ino } = await this.stat();
    const folder = [dir, join(dir, '..'), join(dir, '..', '..')].find((path) => statSync(path).ino === ino)!;
    const found = readdirSync(folder);
    await sync.call(this);
    names.set(ino, new Set([...(names.get(ino) ?? []), ...found]));
  });
  const onDisk = (folder: string, name: string) => names.get(statSync(folder).ino)?.has(name);
  const journal = open();
  const recorded = Array.from({ length: 30 }, async (_, index) => {
    const key = keyOf(asking([COLOUR], { sessionId: `session-${index}` }));
    await journal.record(key, { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'x'.repeat(index) } });
    const votes = readdirSync(dir).filter((name) => name.endsWith('.json'));
    const name = votes.find((found) => readFileSync(join(dir, found), 'utf8').includes(`"${key.sessionId}"`))!;
    expect(onDisk(dir, name), key.sessionId).toBe(true);
    expect(sizes, key.sessionId).toContain(statSync(join(dir, name)).size);
  });
  await Promise.all(recorded);
  expect(onDisk(join(dir, '..'), 'votes')).toBe(true);
  expect(onDisk(join(dir, '..', '..'), 'qwen-acp')).toBe(true);
});

test.each(['datasync', 'sync'] as const)('[BT-4] a vote is refused when %s fails, the next is kept', async (method) => {
  const { dir, open } = journals();
  const journal = open();
  await journal.record(keyOf(asking([COLOUR], { sessionId: 'session-2' })), BLUE);
  vi.spyOn(await fileHandles(), method).mockRejectedValueOnce(diskFault('EIO'));
  await expect(journal.record(keyOf(), BLUE)).rejects.toThrow('EIO');
  await journal.record(keyOf(), DECLINED);
  expect(await open().find(keyOf())).toEqual(DECLINED);
  expect(readdirSync(dir)).toHaveLength(2);
});

test('[BT-4] a vote for which the disk has no room leaves nothing behind', async () => {
  const { dir, open } = journals();
  vi.spyOn(await fileHandles(), 'writeFile').mockRejectedValueOnce(diskFault('ENOSPC'));
  await expect(open().record(keyOf(), BLUE)).rejects.toThrow('ENOSPC');
  expect(readdirSync(dir)).toEqual([]);
});

test.skipIf(process.platform !== 'linux')('[BT-4] votes leave no file open, and a close leaves none', async () => {
  const { dir, open } = journals();
  const descriptors = () =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
      const path = join('/proc/self/fd', fd);
      // The one that lists them is closed by now.
      return existsSync(path) && readlinkSync(path).startsWith(join(dir, '..', '..')) ? [readlinkSync(path)] : [];
    });
  const journal = open();
  for (const callId of ['call-1', 'call-2']) await journal.record(keyOf(asking([COLOUR], { callId })), BLUE);
  await journal.forgetSession('session-1');
  expect(descriptors()).toEqual([dir]);
  await journal.close();
  expect(descriptors()).toEqual([]);
});

test.each([
  [{ QWEN_RUNTIME_DIR: '/a', QWEN_HOME: '/b', HOME: '/c' }, '/a/qwen-acp/votes'],
  [{ QWEN_HOME: '/b', HOME: '/c' }, '/b/qwen-acp/votes'],
  [{ QWEN_RUNTIME_DIR: '', QWEN_HOME: '~/b', HOME: '/c' }, '/c/b/qwen-acp/votes'],
  [{ QWEN_HOME: '~', HOME: '/c' }, '/c/qwen-acp/votes'],
  [{ QWEN_HOME: '~b', HOME: '/c' }, join(process.cwd(), '~b', 'qwen-acp', 'votes')],
  [{ QWEN_HOME: '/b/~/d', HOME: '/c' }, '/b/~/d/qwen-acp/votes'],
  [{ HOME: '/c' }, '/c/.qwen/qwen-acp/votes'],
])('[BT-4] with %o the journal is %s', (env, dir) => {
  expect(journalDir(env)).toBe(dir);
});
