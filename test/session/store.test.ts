import { createHook } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type RecordDraft, userRecord } from '../../src/session/records.ts';
import { lockPath, type TailState, TranscriptStore } from '../../src/session/store.ts';
import type { TranscriptRecord } from '../../src/session/transcript.ts';
import { bundle, Child } from '../support/child.ts';
import { makeFifo } from '../support/fifo.ts';
import type { Answer, Order } from './store-child.ts';

const scripts = mkdtempSync(join(tmpdir(), 'store-child-'));
let script: string;
let folder: string;
let path: string;
const children: Child[] = [];

beforeAll(() => {
  script = bundle(new URL('store-child.ts', import.meta.url), scripts);
});
afterAll(() => rmSync(scripts, { recursive: true, force: true }));
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-'));
  path = join(folder, 'projects', '-srv-project', 'chats', 'a.jsonl');
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  rmSync(folder, { recursive: true, force: true });
});

const context = {
  sessionId: '0b251374-7eef-4fda-9a33-b6ea5dceeed4',
  cwd: '/srv/project',
  version: '0',
  newId: randomUUID,
  now: () => new Date('2026-11-30T12:00:00Z'),
};

const say = (text: string): RecordDraft => userRecord(context, { role: 'user', parts: [{ text }] });
const quick = { durable: false };

function textsIn(file: string): (string | undefined)[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => (JSON.parse(line) as TranscriptRecord).message?.parts?.[0]?.text);
}

/** What a reader of the file as it is would answer. */
function tailOf(file: string, lastUuid: string | null = null): TailState {
  const bytes = readFileSync(file);
  return {
    ino: statSync(file).ino,
    size: bytes.length,
    tailBytes: bytes.subarray(-256),
    endsWithNewline: bytes.at(-1) === 0x0a,
    lastUuid,
  };
}

function plant(bytes: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

describe('the file', () => {
  test('[TR-3, TR-6] appears with the first record, for its owner alone, in folders of the same kind', async () => {
    const store = new TranscriptStore(path, null);
    await store.append([], { durable: true });
    expect(readdirSync(folder)).toEqual([]);
    expect(store.tail).toBe(null);
    await store.append([say('one')], quick);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    for (const made of ['projects', 'projects/-srv-project', 'projects/-srv-project/chats'])
      expect(statSync(join(folder, made)).mode & 0o777).toBe(0o700);
    expect(readdirSync(dirname(path))).toEqual(['a.jsonl']);
  });

  test('[TR-6] leaves the modes of folders and files that were there', async () => {
    plant('');
    chmodSync(path, 0o640);
    chmodSync(dirname(path), 0o755);
    await new TranscriptStore(path, tailOf(path)).append([say('one')], quick);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o755);
  });

  test.each<[string, string, string]>([
    ['a torn line', '{"uuid":"x"}\n{"uuid":"y","par', '{"uuid":"x"}\n{"uuid":"y","par\n'],
    ['a whole line without its newline', '{"uuid":"x"}', '{"uuid":"x"}\n'],
    ['a newline', '{"uuid":"x"}\n', '{"uuid":"x"}\n'],
    ['nothing, being empty', '', ''],
  ])('[TR-4, TR-5] that ends in %s is never glued to the next record', async (_, before, kept) => {
    plant(before);
    const [record] = await new TranscriptStore(path, tailOf(path, 'x')).append([say('next')], quick);
    expect(readFileSync(path, 'utf8')).toBe(`${kept}${JSON.stringify(record)}\n`);
    expect(record!.parentUuid).toBe('x');
  });

  test('[TR-5] holds what was appended, in the order of the calls, linked and known to its end', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 });
    const batches = fc.array(fc.array(text, { maxLength: 3 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.string({ maxLength: 600 }), batches, async (before, appends) => {
        plant(before);
        const store = new TranscriptStore(path, tailOf(path, 'first'));
        const written = await Promise.all(appends.map((texts) => store.append(texts.map(say), quick)));
        const records = written.flat();
        const added = readFileSync(path).subarray(Buffer.byteLength(before)).toString();
        expect(added.replace(/^\n/, '')).toBe(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
        expect(records.map((record) => record.message!.parts![0]!.text)).toEqual(appends.flat());
        expect(records.map((record) => record.parentUuid)).toEqual(
          ['first', ...records.map((record) => record.uuid)].slice(0, records.length),
        );
        const known = store.tail!;
        expect({ ...known, tailBytes: Buffer.from(known.tailBytes) }).toEqual(
          tailOf(path, records.at(-1)?.uuid ?? 'first'),
        );
      }),
      { numRuns: 60 },
    );
  });
});

describe('a file that is not the known one any more', () => {
  const replaced = () => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  };
  test.each<[string, () => void]>([
    ['has grown', () => appendFileSync(path, '{}\n')],
    ['has grown by what it ended in', () => appendFileSync(path, readFileSync(path))],
    ['was cut', () => truncateSync(path, 100)],
    ['was emptied', () => truncateSync(path, 0)],
    ['was rewritten in the same size', () => writeFileSync(path, readFileSync(path, 'utf8').replace('one', 'two'))],
    ['was replaced by a copy', replaced],
    ['is gone', () => rmSync(path)],
    ['is gone with its folder', () => rmSync(dirname(path), { recursive: true })],
  ])('[TR-7] %s: nothing is written, and the fault says what to do', async (_, change) => {
    const store = new TranscriptStore(path, null);
    await store.append([say(`${'-'.repeat(300)} one`)], quick);
    change();
    const before = existsSync(path) ? readFileSync(path) : undefined;
    for (const attempt of ['two', 'three'])
      await expect(store.append([say(attempt)], quick)).rejects.toMatchObject({
        kind: 'transcript_changed',
        message: expect.stringMatching(/a\.jsonl .*Load the session again/),
      });
    expect(existsSync(path) ? readFileSync(path) : undefined).toEqual(before);
    expect(existsSync(lockPath(path))).toBe(false);
  });

  test('[TR-7] a new session does not touch a file that appeared in its place', async () => {
    plant('{"uuid":"theirs"}\n');
    await expect(new TranscriptStore(path, null).append([say('ours')], quick)).rejects.toMatchObject({
      kind: 'transcript_changed',
    });
    expect(readFileSync(path, 'utf8')).toBe('{"uuid":"theirs"}\n');
  });
});

describe('something else in the file’s place', () => {
  const elsewhere = () => join(folder, 'elsewhere');
  const listen = async () => {
    const server = createServer().listen(path);
    await new Promise((resolve) => server.once('listening', resolve));
    server.unref();
  };
  const cases: [string, RegExp, () => unknown][] = [
    ['a symbolic link', /symbolic link/, () => symlinkSync(elsewhere(), path)],
    ['a dangling symbolic link', /symbolic link/, () => symlinkSync(join(folder, 'nowhere'), path)],
    ['a directory', /directory/, () => mkdirSync(path)],
    ['a FIFO', /FIFO/, () => makeFifo(path)],
    ['a socket', /socket/, listen],
  ];
  const known = { ino: 1, size: 6, tailBytes: Buffer.from('kept\n\n'), endsWithNewline: true, lastUuid: 'x' };

  describe.each<[string, TailState | null]>([
    ['a new session', null],
    ['a loaded one', known],
  ])('for %s', (_, tail) => {
    test.each(cases)('[TR-6] %s is refused at once and left as it is', async (_, message, prepare) => {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(elsewhere(), 'kept\n\n');
      await prepare();
      await expect(new TranscriptStore(path, tail).append([say('one')], quick)).rejects.toMatchObject({
        kind: 'invalid_params',
        message: expect.stringMatching(message),
      });
      expect(readFileSync(elsewhere(), 'utf8')).toBe('kept\n\n');
      expect(existsSync(join(folder, 'nowhere'))).toBe(false);
    });
  });
});

describe('failures', () => {
  test('[TR-5] what waited behind a failed append fails with it, what comes later is tried', async () => {
    writeFileSync(join(folder, 'projects'), 'a file where a folder has to be');
    const store = new TranscriptStore(path, null);
    const first = store.append([say('call')], quick);
    const second = store.append([say('result of the call')], quick);
    // Runs before the second append does, which would succeed now.
    const repaired = first.finally(() => rmSync(join(folder, 'projects')));
    await expect(repaired).rejects.toMatchObject({ kind: 'storage' });
    await expect(second).rejects.toMatchObject({ kind: 'storage' });
    const [record] = await store.append([say('later')], quick);
    expect(record!.parentUuid).toBe(null);
    expect(textsIn(path)).toEqual(['later']);
  });

  test('[TR-5] settled waits for every append, failed ones too', async () => {
    const store = new TranscriptStore(path, null);
    const ends: string[] = [];
    void store.append([say('one')], { durable: true }).then(() => ends.push('one'));
    writeFileSync(join(folder, 'other'), '');
    void store.append([say('two')], quick).then(() => ends.push('two'));
    await store.settled();
    expect(ends).toEqual(['one', 'two']);
    const failing = new TranscriptStore(join(folder, 'other', 'a.jsonl'), null);
    void failing.append([say('one')], quick).catch(() => ends.push('failed'));
    await failing.settled();
    expect(ends).toEqual(['one', 'two', 'failed']);
  });

  test('[TR-5] a disk that takes only a part gets nothing: the file is as before and goes on', async () => {
    await new TranscriptStore(path, null).append([say('one')], quick);
    const before = readFileSync(path);
    // A limit on the size of files fails a write as a full disk does: first short, then with an error.
    const child = new Child(script, limitedNode());
    children.push(child);
    const append = (file: string, tail: TailState | null, text: string) =>
      child.call<Answer>({ do: 'append', path: file, tail, texts: [text] } satisfies Order);
    const fresh = join(dirname(path), 'fresh.jsonl');

    expect(await append(path, tailOf(path), 'x'.repeat(500_000))).toMatchObject({ ok: false, kind: 'storage' });
    expect(readFileSync(path)).toEqual(before);
    expect(await append(fresh, null, 'x'.repeat(500_000))).toMatchObject({ ok: false, kind: 'storage' });
    expect(readdirSync(dirname(path))).toEqual(['a.jsonl']);

    expect(await append(path, tailOf(path), 'two')).toEqual({ ok: true });
    expect(textsIn(path)).toEqual(['one', 'two']);
    expect(await append(fresh, null, 'one')).toEqual({ ok: true });
  });

  /** Node under a shell that allows files of some hundred kilobytes (the unit is 512 or 1,024 bytes). */
  function limitedNode(): { command: string; args: string[] } {
    const wrapper = join(folder, 'node');
    writeFileSync(wrapper, `#!/bin/sh\nulimit -f 200\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 });
    return { command: wrapper, args: [] };
  }
});

describe('durable', () => {
  /** Every asynchronous file operation that `action` starts, and whether the lock was there when it did. */
  async function operations(action: () => Promise<unknown>): Promise<boolean[]> {
    const locked: boolean[] = [];
    const hook = createHook({
      init(_, type) {
        if (type === 'FSREQCALLBACK') locked.push(existsSync(lockPath(path)));
      },
    }).enable();
    try {
      await action();
      return locked;
    } finally {
      hook.disable();
    }
  }

  test('[TR-5, TR-7] syncs file and new folders, outside the lock; an ordinary append syncs nothing', async () => {
    const store = new TranscriptStore(path, null);
    const append = (durable: boolean) => operations(() => store.append([say('x')], { durable }));
    expect(await append(false)).toEqual([]);
    // The file, and the folders that got an entry: the one of the file, and the three above it.
    expect(await append(true)).toEqual([false, false, false, false, false]);
    expect(await append(true)).toEqual([false]);
    expect(await append(false)).toEqual([]);
  });
});

describe('two processes', () => {
  function newChild(): Child {
    const child = new Child(script);
    children.push(child);
    return child;
  }

  test('[TR-7] that append at the same moment: one has written all its lines, the other is told', async () => {
    const pair = [newChild(), newChild()];
    const names = ['left', 'right'];
    for (let round = 0; round < 25; round++) {
      const file = join(folder, `${round}.jsonl`);
      if (round % 2 === 0) writeFileSync(file, '{"message":{"parts":[{"text":"before"}]}}\n');
      const tail = round % 2 === 0 ? tailOf(file) : null;
      const answers = await Promise.all(
        pair.map((child, index) => {
          const texts = Array.from({ length: 40 }, () => names[index]!.repeat(200));
          return child.call<Answer>({ do: 'append', path: file, tail, texts } satisfies Order);
        }),
      );
      const winner = answers.findIndex((answer) => answer.ok);
      expect(answers[1 - winner]).toMatchObject({ ok: false, kind: 'transcript_changed' });
      const before = tail === null ? [] : ['before'];
      expect(textsIn(file)).toEqual([...before, ...Array.from({ length: 40 }, () => names[winner]!.repeat(200))]);
    }
  });

  test('[TR-7] that read anew whenever they are told build one chain without a gap', async () => {
    await new TranscriptStore(path, null).append([say('start')], quick);
    const answers = await Promise.all(
      ['left', 'right'].map((name) =>
        newChild().call<Answer>({ do: 'append_until', path, name, count: 40 } satisfies Order),
      ),
    );
    expect(answers).toEqual([{ ok: true }, { ok: true }]);
    const records = readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TranscriptRecord);
    expect(records).toHaveLength(1 + 2 * 2 * 40);
    expect(records.map((record) => record.parentUuid)).toEqual(
      [null, ...records.map((record) => record.uuid)].slice(0, -1),
    );
  });
});
