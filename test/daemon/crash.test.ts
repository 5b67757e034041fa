import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

interface Crashes {
  readonly MOMENTS: readonly string[];
  readonly KILLS: readonly string[];
  buildForCrashes(): Promise<{ readonly entry: string; remove(): Promise<void> }>;
  /** Throws where a promise was broken; answers which moments came. */
  crashRun(
    entry: string,
    run: { readonly kills: readonly { moment: string; kill: string }[]; readonly shape?: string },
  ): Promise<readonly string[]>;
}

const SCRIPT = new URL('../../scripts/crash.mjs', import.meta.url).href;
const { MOMENTS, KILLS, buildForCrashes, crashRun } = (await import(SCRIPT)) as Crashes;

let bundle: Awaited<ReturnType<Crashes['buildForCrashes']>>;
beforeAll(async () => {
  bundle = await buildForCrashes();
});
afterAll(() => bundle.remove());

const everyMoment = MOMENTS.flatMap((moment) => KILLS.map((kill) => [moment, kill] as const));

test.each(everyMoment)('[BT-4, BT-1, DM-10, TR-5, K020] killed at %s: the %s', async (moment, kill) => {
  expect(await crashRun(bundle.entry, { kills: [{ moment, kill }] })).toEqual([moment]);
});

test.each([
  ['of two questions the first is answered', 'two', 'vote_answered:1', 'both'],
  ['of two questions the second waits', 'two', 'question_created:2', 'daemon'],
  ['of two questions both are answered', 'two', 'journal_written:2', 'both'],
  ['the question was declined', 'declined', 'vote_answered:1', 'both'],
  ['the decline is on its way to the child', 'declined', 'reply_sent:1', 'child'],
])('[BT-4, RS-10] killed when %s', async (_, shape, moment, kill) => {
  expect(await crashRun(bundle.entry, { kills: [{ moment, kill }], shape })).toEqual([moment]);
});

test('[BT-4] killed again and again on the way', async () => {
  const kills = [
    { moment: 'question_created:1', kill: 'daemon' },
    { moment: 'journal_written:1', kill: 'both' },
    { moment: 'reply_sent:1', kill: 'child' },
    { moment: 'response_persisted:1', kill: 'daemon' },
  ];
  expect(await crashRun(bundle.entry, { kills })).toEqual(kills.map(({ moment }) => moment));
});

test('what is shipped cannot be held', async () => {
  const dist = join(import.meta.dirname, '../../dist');
  const shipped = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.js'));
  expect(shipped.length).toBeGreaterThan(3);
  expect(shipped.filter((name) => readFileSync(join(dist, name), 'utf8').includes('FAILPOINT'))).toEqual([]);
  const held = readFileSync(join(bundle.entry, '..', 'main.js'), 'utf8');
  expect(held).toContain('QWEN_ACP_FAILPOINTS');
});
