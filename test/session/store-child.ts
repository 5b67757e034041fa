/** A second process for the tests of the store and its lock: does what it is told, and answers with one message. */
import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { SessionFault } from '../../src/session/faults.ts';
import { withLock } from '../../src/session/lock.ts';
import { userRecord } from '../../src/session/records.ts';
import { type TailState, TranscriptStore } from '../../src/session/store.ts';

export type Order =
  | { readonly do: 'append'; readonly path: string; readonly tail: TailState | null; readonly texts: readonly string[] }
  | { readonly do: 'append_until'; readonly path: string; readonly name: string; readonly count: number }
  | { readonly do: 'hold'; readonly lock: string }
  | {
      readonly do: 'count';
      readonly lock: string;
      readonly counter: string;
      readonly count: number;
      /** A dead owner's lock, put in the lock's place after every turn. */
      readonly dead: string;
    }
  | { readonly do: 'count_and_die'; readonly lock: string; readonly counter: string; readonly count: number };

export type Answer = { readonly ok: true } | { readonly ok: false; readonly kind: string; readonly message: string };

const context = {
  sessionId: '0b251374-7eef-4fda-9a33-b6ea5dceeed4',
  cwd: '/srv/project',
  version: '0',
  newId: randomUUID,
  now: () => new Date(),
};

function drafts(texts: readonly string[]) {
  return texts.map((text) => userRecord(context, { role: 'user', parts: [{ text }] }));
}

/** What a load would know; the file is small. Read in the middle of the other's write, it is read again. */
function readTail(path: string): TailState {
  let bytes = readFileSync(path);
  while (bytes.at(-1) !== 0x0a) bytes = readFileSync(path);
  const lines = bytes.toString().split('\n').filter(Boolean);
  return {
    ino: statSync(path).ino,
    size: bytes.length,
    tailBytes: bytes.subarray(-256),
    endsWithNewline: true,
    lastUuid: (JSON.parse(lines.at(-1)!) as { uuid: string }).uuid,
  };
}

async function appendUntil(path: string, name: string, count: number): Promise<void> {
  for (let done = 0; done < count; ) {
    try {
      await new TranscriptStore(path, readTail(path)).append(drafts([`${name} ${done}`, `${name} ${done}`]), {
        durable: false,
      });
      done++;
    } catch (error) {
      if (!(error instanceof SessionFault && error.kind === 'transcript_changed')) throw error;
    }
  }
}

const increment = (counter: string) => writeFileSync(counter, String(Number(readFileSync(counter, 'utf8')) + 1));

async function count(order: Order & { do: 'count' }): Promise<void> {
  for (let done = 0; done < order.count; done++) {
    await withLock(order.lock, () => increment(order.counter), 10_000);
    try {
      linkSync(order.dead, order.lock);
    } catch {
      // Somebody has it already.
    }
  }
}

async function countAndDie(lock: string, counter: string, count: number): Promise<never> {
  for (let done = 0; ; done++) {
    await withLock(
      lock,
      () => {
        increment(counter);
        if (done === count) process.kill(process.pid, 'SIGKILL');
      },
      10_000,
    );
  }
}

async function obey(order: Order): Promise<void> {
  if (order.do === 'append') {
    await new TranscriptStore(order.path, order.tail).append(drafts(order.texts), { durable: false });
  } else if (order.do === 'append_until') {
    await appendUntil(order.path, order.name, order.count);
  } else if (order.do === 'hold') {
    await withLock(order.lock, () => {
      process.send!({ ok: true } satisfies Answer);
      // Blocks the thread: the lock is never given back.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });
  } else if (order.do === 'count') {
    await count(order);
  } else {
    await countAndDie(order.lock, order.counter, order.count);
  }
}

process.on('message', (order: Order) => {
  obey(order).then(
    () => process.send!({ ok: true } satisfies Answer),
    (error: unknown) => {
      const fault = error instanceof SessionFault ? error : undefined;
      process.send!({ ok: false, kind: fault?.kind ?? 'unexpected', message: String(error) } satisfies Answer);
    },
  );
});
process.on('disconnect', () => process.exit());
