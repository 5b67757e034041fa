import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Journal, type JournalKey, journalDir, journalKey } from '../../src/daemon/journal.ts';
import type { Vote } from '../../src/daemon/ports.ts';
import { createLog } from '../../src/log.ts';
import { asking, COLOUR, PARTS, permitting } from '../support/questions.ts';
import { tempFolder } from '../support/temp.ts';

const BLUE: Vote = { kind: 'selected', optionId: 'proceed_once', answers: { '0': 'Blue' } };
const DECLINED: Vote = { kind: 'cancelled' };
const DAY_MS = 24 * 60 * 60 * 1000;

const keyOf = (request = asking()): JournalKey => {
  const key = journalKey(request);
  if (!key) throw new Error('the request asks nothing');
  return key;
};

function journals() {
  const dir = join(tempFolder(), 'qwen-acp', 'votes');
  const open = (now?: () => number) => {
    const journal = new Journal(dir, createLog('silent'), now);
    onTestFinished(() => journal.close());
    return journal;
  };
  return { dir, open };
}

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
  writeFileSync(path, whole.toString().replace('call-1', 'call-7'));
  expect(await open().find(keyOf())).toBeUndefined();
  await open().record(keyOf(), DECLINED);
  expect(await open().find(keyOf())).toEqual(DECLINED);
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

test.each([
  [{ QWEN_RUNTIME_DIR: '/a', QWEN_HOME: '/b', HOME: '/c' }, '/a/qwen-acp/votes'],
  [{ QWEN_HOME: '/b', HOME: '/c' }, '/b/qwen-acp/votes'],
  [{ QWEN_RUNTIME_DIR: '', QWEN_HOME: '~/b', HOME: '/c' }, '/c/b/qwen-acp/votes'],
  [{ HOME: '/c' }, '/c/.qwen/qwen-acp/votes'],
])('[BT-4] with %o the journal is %s', (env, dir) => {
  expect(journalDir(env)).toBe(dir);
});
