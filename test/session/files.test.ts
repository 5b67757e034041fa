import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { allChatsDirs, deleteSession, listSessions } from '../../src/session/files.ts';
import { thisProcess } from '../../src/session/lock-owner.ts';
import { readSummary } from '../../src/session/summary.ts';
import { makeFifo } from '../support/fifo.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const id = (last: number) => `0b251374-7eef-4fda-9a33-${String(last).padStart(12, '0')}`;
const file = (last: number) => join(folder, `${id(last)}.jsonl`);

function record(sessionId: string, fields: object): string {
  const head = { uuid: 'u', parentUuid: null, sessionId, timestamp: '2026-11-30T12:00:00.000Z' };
  return `${JSON.stringify({ ...head, type: 'user', provenance: 'real_user', cwd: '/srv/project', version: '1', ...fields })}\n`;
}
const user = (sessionId: string, text: string, cwd = '/srv/project') =>
  record(sessionId, { cwd, message: { role: 'user', parts: [{ text }] } });
const named = (sessionId: string, customTitle: string) =>
  record(sessionId, { type: 'system', subtype: 'custom_title', systemPayload: { customTitle } });

describe('listSessions', () => {
  test('[ACP-2, TR-8] answers the newest write first, equal ones by id', async () => {
    for (const [last, time] of [
      [1, 1_000],
      [2, 3_000],
      [3, 2_000],
      [4, 2_000],
    ] as const) {
      writeFileSync(file(last), user(id(last), `prompt ${last}`));
      utimesSync(file(last), time, time);
    }
    const sessions = (await listSessions([folder])).sessions;
    expect(sessions.map((session) => session.sessionId)).toEqual([id(2), id(3), id(4), id(1)]);
    expect(sessions[0]).toStrictEqual({
      sessionId: id(2),
      path: file(2),
      cwd: '/srv/project',
      title: 'prompt 2',
      createdAt: '2026-11-30T12:00:00.000Z',
      updatedAt: '1970-01-01T00:50:00.000Z',
    });
  });

  test('[ACP-2, TR-6] leaves out what is no transcript', async () => {
    writeFileSync(file(1), user(id(1), 'kept'));
    writeFileSync(file(2), '');
    writeFileSync(file(3), '\0\0\0junk\n{"sessionId":1}\n[]\nnull\n');
    writeFileSync(file(4), user(id(1), 'of another session'));
    writeFileSync(join(folder, `${id(5)}.ledger.jsonl`), user(id(5), 'x'));
    writeFileSync(join(folder, 'notes.jsonl'), user('notes', 'x'));
    writeFileSync(join(folder, `${id(6)}.txt`), user(id(6), 'x'));
    writeFileSync(join(folder, `${id(6).toUpperCase()}B.jsonl`), user(id(6), 'x'));
    writeFileSync(join(folder, 'target'), user(id(7), 'x'));
    symlinkSync(join(folder, 'target'), file(7));
    mkdirSync(file(8));
    makeFifo(file(9));
    expect((await listSessions([folder])).sessions.map((session) => session.sessionId)).toEqual([id(1)]);
  });

  test('[ACP-2] of a folder that is not there is empty', async () => {
    expect((await listSessions([join(folder, 'gone')])).sessions).toEqual([]);
    writeFileSync(join(folder, 'a-file'), '');
    expect((await listSessions([join(folder, 'a-file')])).sessions).toEqual([]);
  });

  test('[ACP-2, TR-8] finds directory, first prompt and newest name at the ends of a file of any size', async () => {
    const long = `say "${'\\é'.repeat(50_000)}"`;
    const cwd = '/srv/a "b" \\ é';
    writeFileSync(file(1), user(id(1), long, cwd));
    writeFileSync(
      file(2),
      user(id(2), 'first', cwd) + user(id(2), long) + named(id(2), 'Old') + named(id(2), 'New  name'),
    );
    writeFileSync(file(3), `{"torn\n${user(id(3), ' first \n line ', cwd)}${user(id(3), long)}`);
    const sessions = (await listSessions([folder])).sessions;
    const titles = Object.fromEntries(sessions.map((session) => [session.sessionId, session.title]));
    expect(new Set(sessions.map((session) => session.cwd))).toEqual(new Set([cwd]));
    expect(titles).toEqual({ [id(1)]: `${long.slice(0, 79)}…`, [id(2)]: 'New name', [id(3)]: 'first line' });
  });

  test('[ACP-2] more sessions than are read in one go are all there', async () => {
    for (let last = 0; last < 150; last++) writeFileSync(file(last), user(id(last), 'x'));
    expect((await listSessions([folder])).sessions).toHaveLength(150);
  });
});

describe('readSummary', () => {
  test('[ACP-2, TR-4] is not misled by what a message says', () => {
    const liar = JSON.stringify({ sessionId: id(2), cwd: '/liar', timestamp: 'never' });
    const whole = user(id(1), `${liar}${liar}`);
    for (let length = 0; length <= whole.length; length++) {
      const summary = readSummary(id(1), whole.slice(0, length), '');
      if (summary !== undefined) expect(summary.cwd).toBe('/srv/project');
      expect(readSummary(id(2), whole.slice(0, length), '')).toBe(undefined);
    }
    expect(readSummary(id(1), whole, '')).toBeDefined();
  });

  test('[ACP-2, TR-4] takes any text for both ends', () => {
    const lines = fc.array(fc.oneof(fc.string(), fc.json(), fc.constant(user(id(1), 'x').trim())), { maxLength: 5 });
    fc.assert(
      fc.property(lines, lines, fc.nat(), (head, tail, cut) => {
        const text = head.join('\n');
        const summary = readSummary(id(1), text.slice(0, cut % (text.length + 1)), tail.join('\n'));
        expect(summary?.cwd ?? '/srv/project').toBe('/srv/project');
      }),
    );
  });
});

describe('deleteSession', () => {
  test('[ACP-2] removes the transcript and what is beside it, and nothing else', async () => {
    writeFileSync(file(1), user(id(1), 'x'));
    writeFileSync(join(folder, `${id(1)}.ledger.jsonl`), '{}\n');
    writeFileSync(`${file(1)}.lock`, JSON.stringify({ ...thisProcess(), pid: 4_194_305 }));
    writeFileSync(`${file(1)}.lock.0123456789ab`, '');
    writeFileSync(file(2), user(id(2), 'y'));
    expect(await deleteSession(file(1))).toBe(true);
    expect(readdirSync(folder)).toEqual([`${id(2)}.jsonl`]);
    expect(await deleteSession(file(1))).toBe(false);
    expect(await deleteSession(join(folder, 'gone', 'x.jsonl'))).toBe(false);
  });

  test('[ACP-2, TR-6] refuses what is no regular file and never follows a link', async () => {
    writeFileSync(join(folder, 'target'), 'kept');
    symlinkSync(join(folder, 'target'), file(1));
    mkdirSync(file(2));
    for (const path of [file(1), file(2)])
      await expect(deleteSession(path)).rejects.toMatchObject({ kind: 'invalid_params' });
    expect(readFileSync(join(folder, 'target'), 'utf8')).toBe('kept');
    expect(readdirSync(folder)).toHaveLength(3);
  });
});

test('[ACP-2] the chats folders of a runtime folder are one a project', () => {
  mkdirSync(join(folder, 'projects', '-srv-a', 'chats'), { recursive: true });
  mkdirSync(join(folder, 'projects', '-srv-b'), { recursive: true });
  expect(allChatsDirs(folder).sort()).toEqual([
    join(folder, 'projects', '-srv-a', 'chats'),
    join(folder, 'projects', '-srv-b', 'chats'),
  ]);
  expect(allChatsDirs(join(folder, 'gone'))).toEqual([]);
});
