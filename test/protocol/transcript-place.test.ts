import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, statSync, symlinkSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFifo } from '../support/fifo.ts';
import { CWD, Home, Peer, submit } from '../support/peer.ts';

test('[TR-6, TR-4] what is no regular file in the place of a transcript is refused at once, and not touched', async () => {
  const home = new Home();
  const target = join(home.path, 'target.jsonl');
  renameSync(home.file(home.place('c0.dangling')), target);
  const before = readFileSync(target);
  const kinds: readonly (readonly [string, (path: string) => void])[] = [
    ['a symbolic link', (path) => symlinkSync(target, path)],
    ['a symbolic link', (path) => symlinkSync('/nowhere', path)],
    ['a directory', (path) => void mkdirSync(path)],
    ['a FIFO', makeFifo],
  ];
  const peer = await Peer.start({ home, restore: true });
  for (const [kind, make] of kinds) {
    const id = randomUUID();
    make(home.file(id));
    const here = { sessionId: id, cwd: CWD };
    for (const call of [
      () => peer.load(id),
      () => peer.resume(id),
      () => peer.request('qwen/session/loadUpdates', here),
      () => peer.request('qwen/control/session/branch', here),
      () => peer.request('session/new', { cwd: CWD, mcpServers: [], _meta: { 'qwen-code/sessionId': id } }),
    ]) {
      await expect(call(), kind).rejects.toMatchObject({ code: -32602, message: expect.stringContaining(kind) });
    }

    const waiting = await peer.newSession();
    const { turn, asked } = await peer.askIn(waiting);
    unlinkSync(home.file(waiting));
    make(home.file(waiting));
    asked.answer(submit({ 0: 'Red' }));
    await expect(turn, kind).rejects.toMatchObject({ code: -32602, message: expect.stringContaining(kind) });
  }
  expect(readFileSync(target)).toEqual(before);
});

test('[TR-6] what the child creates is for its owner alone', async () => {
  const peer = await Peer.start();
  const id = await peer.newSession();
  await peer.prompt(id, 'hello');
  const file = peer.home.file(id);
  const mode = (path: string) => statSync(path).mode & 0o777;
  expect(mode(file)).toBe(0o600);
  for (let folder = dirname(file); folder !== peer.home.path; folder = dirname(folder))
    expect(mode(folder)).toBe(0o700);
});

test.each(['/proc/sessions', '/dev/null', '/dev/null/sessions'])(
  '[TR-1, ACP-4] a home that can hold no folder, %s, is an error of each prompt, and the child serves on',
  async (path) => {
    const peer = await Peer.start({ env: { QWEN_HOME: path } });
    const id = await peer.newSession();
    for (const text of ['one', 'two']) {
      await expect(peer.prompt(id, text)).rejects.toMatchObject({
        code: -32603,
        data: { code: 'session_storage_failed' },
      });
    }
    expect((await peer.request('session/list', {})).sessions).toEqual([]);
    expect(await peer.eof()).toEqual({ code: 0, signal: null });
  },
);
