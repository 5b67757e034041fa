import { setMaxListeners } from 'node:events';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventLog } from '../../src/daemon/events.ts';
import type { Subscription } from '../../src/daemon/ports.ts';
import { decode } from '../support/bridge.ts';

const never = new AbortController().signal;
setMaxListeners(0, never);

/** Everything that a subscriber can read without waiting for what is not said yet; then it closes. */
async function readUntil(subscription: Subscription, lastId: number): Promise<ReturnType<typeof decode>> {
  const events: ReturnType<typeof decode> = [];
  while ((events.at(-1)?.id ?? 0) < lastId) {
    const bytes = await subscription.next(never);
    if (bytes === undefined) break;
    events.push(...decode(bytes));
  }
  subscription.close();
  return events;
}

const ids = (events: readonly { readonly id?: number }[]) => events.map(({ id }) => id);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test('[DM-9] events are numbered from 1, and each subscriber gets all of them from when it came', async () => {
  const log = new EventLog();
  const first = log.subscribe({});
  log.publish('a', { n: 1 }, { promptId: 'p', originatorClientId: 'c' });
  const second = log.subscribe({});
  log.publish('b', null);
  log.publish('c', 'ü\n');
  const all = await readUntil(first, 3);
  expect(all).toMatchObject([
    { id: 1, v: 1, type: 'a', promptId: 'p', data: { n: 1 }, originatorClientId: 'c' },
    { id: 2, type: 'b', data: null },
    { id: 3, type: 'c', data: 'ü\n' },
  ]);
  expect(all[1]).not.toHaveProperty('promptId');
  expect(all[0]?._meta.serverTimestamp).toBeLessThanOrEqual(Date.now());
  expect(ids(await readUntil(second, 3))).toEqual([2, 3]);
});

test('[DM-9, PF-5] a burst of 2,000 events cuts off no reader, also one that reads only then, and all get the same bytes', async () => {
  const log = new EventLog();
  const subscriptions = Array.from({ length: 50 }, () => log.subscribe({}));
  const waiting = subscriptions.map((subscription) => subscription.next(never));
  for (let at = 0; at < 2_000; at++) log.publish('session_update', { text: `chunk ${at}` });
  const firsts = await Promise.all(waiting);
  expect(firsts.every((bytes) => bytes === firsts[0])).toBe(true);
  const rest = await Promise.all(subscriptions.map((subscription) => readUntil(subscription, 2_000)));
  const head = decode(firsts[0] as Uint8Array);
  for (const events of rest) expect(ids([...head, ...events])).toEqual(range(1, 2_000));
  expect(log.subscribers).toBe(0);
});

test('[DM-9] a reader that stands still while the ring goes round is cut off, and the others are not', async () => {
  const log = new EventLog({ maxEvents: 10, maxBytes: 1_000_000 });
  const slow = log.subscribe({});
  const quick = log.subscribe({});
  for (let at = 1; at <= 25; at++) {
    log.publish('x', at);
    expect(decode((await quick.next(never)) as Uint8Array)).toMatchObject([{ id: at }]);
  }
  expect(await slow.next(never)).toBeUndefined();
  expect(await slow.next(never)).toBeUndefined();
  expect(log.subscribers).toBe(1);
});

test.each([
  { name: 'all of it', last: 0, from: 1, resync: undefined },
  { name: 'a part', last: 7, from: 8, resync: undefined },
  { name: 'nothing', last: 10, from: 11, resync: undefined },
  { name: 'what a daemon before this one said', last: 99, from: 1, resync: 'epoch_reset' },
])('[DM-9] replay after a number: $name', async ({ last, from, resync }) => {
  const log = new EventLog();
  for (let at = 1; at <= 10; at++) log.publish('x', at);
  const subscription = log.subscribe({ lastEventId: last });
  log.publish('y', 'later');
  const events = await readUntil(subscription, 11);
  const replayed = range(from, 10);
  const expected = [
    ...(resync ? [{ type: 'state_resync_required', data: { reason: resync, eventEpoch: log.epoch } }] : []),
    ...replayed.map((id) => ({ id, type: 'x' })),
    {
      type: 'replay_complete',
      data: { lastReplayedEventId: 10, lastEventId: 10, replayedCount: replayed.length },
    },
    { id: 11, type: 'y' },
  ];
  expect(events).toMatchObject(expected);
  expect(events).toHaveLength(expected.length);
});

test('[DM-9] who asks for events that are forgotten is told so, and gets those that are kept', async () => {
  const log = new EventLog({ maxEvents: 5, maxBytes: 1_000_000 });
  for (let at = 1; at <= 20; at++) log.publish('x', at);
  const events = await readUntil(log.subscribe({ lastEventId: 3 }), 20);
  expect(events[0]).toMatchObject({
    type: 'state_resync_required',
    data: { reason: 'ring_evicted', lastDeliveredId: 3, earliestAvailableId: 16 },
  });
  expect(ids(events.slice(1))).toEqual(range(16, 20));
});

test('[DM-9] the ring is bounded in events and in bytes, and keeps the newest whatever its size', () => {
  const counted = new EventLog({ maxEvents: 3, maxBytes: 1_000_000 });
  for (let at = 1; at <= 5_000; at++) counted.publish('x', at);
  expect(ids(counted.since(1))).toEqual([4_998, 4_999, 5_000]);
  const weighed = new EventLog({ maxEvents: 1_000, maxBytes: 4_000 });
  for (let at = 1; at <= 100; at++) weighed.publish('x', 'y'.repeat(900));
  expect(ids(weighed.since(1))).toEqual([98, 99, 100]);
  weighed.publish('x', 'y'.repeat(9_000));
  expect(ids(weighed.since(1))).toEqual([101]);
});

test('[DM-9] numbers that a replay takes are not given again', () => {
  const log = new EventLog();
  expect(log.reserve(3)).toBe(1);
  expect(log.lastEventId).toBe(3);
  expect(log.publish('x', 1).id).toBe(4);
  expect(ids(log.since(1))).toEqual([4]);
  expect(log.reserve(0)).toBe(5);
});

test('[DM-9] at the end everything that was said is read, then nothing; a subscriber that comes later gets nothing', async () => {
  const log = new EventLog();
  const reader = log.subscribe({});
  const waiting = log.subscribe({});
  const pending = waiting.next(never);
  log.end();
  expect(await pending).toBeUndefined();
  expect(log.publish('late', 1).id).toBe(1);
  expect(await reader.next(never)).toBeUndefined();
  expect(await log.subscribe({}).next(never)).toBeUndefined();
  const ended = new EventLog();
  const last = ended.subscribe({});
  ended.publish('x', 1);
  ended.end();
  expect(ids(decode((await last.next(never)) as Uint8Array))).toEqual([1]);
  expect(await last.next(never)).toBeUndefined();
});

test('[DM-9] a reader whose connection ends, or that is closed, stops waiting', async () => {
  const log = new EventLog();
  const gone = new AbortController();
  const aborted = log.subscribe({});
  const closed = log.subscribe({});
  const both = [aborted.next(gone.signal), closed.next(never)];
  gone.abort();
  closed.close();
  expect(await Promise.all(both)).toEqual([undefined, undefined]);
  expect(log.subscribers).toBe(0);
});

test('[DM-9] however reading and publishing take turns, no event is lost, doubled or out of order', async () => {
  const step = fc.oneof(
    fc.record({ publish: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ read: fc.constantFrom(0, 1, 2) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 0, max: 20 }), async (steps, seen) => {
      const log = new EventLog({ maxEvents: 40, maxBytes: 1_000_000 });
      for (let at = 0; at < 20; at++) log.publish('x', at);
      const readers = [0, 1, 2].map(() => ({
        subscription: log.subscribe({ lastEventId: seen }),
        got: [] as number[],
      }));
      let published = 20;
      for (const one of steps) {
        if ('publish' in one) {
          for (let at = 0; at < one.publish; at++) log.publish('x', at);
          published += one.publish;
          continue;
        }
        const reader = readers[one.read];
        const last = reader?.got.at(-1) ?? seen;
        if (!reader || last >= published) continue;
        const bytes = await reader.subscription.next(never);
        // It stood still for longer than the ring holds.
        if (bytes === undefined) expect(published - last).toBeGreaterThan(40);
        else reader.got.push(...decode(bytes).flatMap(({ id }) => (id === undefined ? [] : [id])));
      }
      for (const { got } of readers) expect(got).toEqual(range(seen + 1, seen + got.length));
    }),
  );
});
