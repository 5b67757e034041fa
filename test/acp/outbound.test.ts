import { PassThrough, Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createConnection } from '../../src/acp/connection.ts';
import { HangUpError } from '../../src/acp/errors.ts';
import { Outbox } from '../../src/acp/outbox.ts';
import { anyNotification, anyRequest } from './any-method.ts';
import { call, logTo, rawPeer } from './raw-peer.ts';

const ask = anyRequest('ask');
const note = anyNotification('note');

/** A stream that takes nothing until it is told to. */
class Gate extends Writable {
  readonly writes: string[] = [];
  readonly #waiting: (() => void)[] = [];
  open = false;

  constructor() {
    super({ highWaterMark: 1024, decodeStrings: true });
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk.toString());
    this.#whenOpen(done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.writes.push(Buffer.concat(chunks.map(({ chunk }) => chunk)).toString());
    this.#whenOpen(done);
  }

  release(): void {
    this.open = true;
    for (const done of this.#waiting.splice(0)) done();
  }

  #whenOpen(done: () => void): void {
    if (this.open) done();
    else this.#waiting.push(done);
  }
}

describe('writes', () => {
  test('[PF-4] what is sent within one tick is one write, awaited or not', async () => {
    const output = new Gate();
    output.release();
    const connection = createConnection(new PassThrough(), output, logTo([]));
    for (let n = 0; n < 100; n++) void connection.notify(note, { n });
    for (let n = 100; n < 200; n++) await connection.notify(note, { n });
    await new Promise((resolve) => setImmediate(resolve));
    expect(output.writes.join('').split('\n')).toHaveLength(201);
    expect(output.writes.length).toBeLessThanOrEqual(2);
  });

  test('[PF-4] a burst of 2,000 costs few writes', async () => {
    const output = new Gate();
    output.release();
    const connection = createConnection(new PassThrough(), output, logTo([]));
    for (let n = 0; n < 2000; n++) await connection.notify(note, { n, text: 'x'.repeat(100) });
    await new Promise((resolve) => setImmediate(resolve));
    expect(output.writes.join('').split('\n')).toHaveLength(2001);
    expect(output.writes.length).toBeLessThan(20);
  });

  test('[ACP-5] a write waits while the peer reads nothing, and goes on when it reads', async () => {
    const output = new Gate();
    const connection = createConnection(new PassThrough(), output, logTo([]));
    await connection.notify(note, { text: 'small' });
    let sent = 0;
    const flood = (async () => {
      for (; sent < 1000; sent++) await connection.notify(note, { text: 'x'.repeat(1000) });
    })();
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toBeLessThan(100);
    expect(output.writableLength).toBeLessThan(256 * 1024);
    output.release();
    await flood;
    expect(sent).toBe(1000);
  });

  test('[ACP-5] whatever is written, in whatever form, is whole lines in the order of the calls', async () => {
    const piece = fc.record({
      form: fc.constantFrom('notify', 'text', 'bytes', 'request'),
      text: fc.oneof(fc.string({ unit: 'binary', maxLength: 50 }), fc.constant('x'.repeat(70_000))),
      wait: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 20 }), async (pieces) => {
        const peer = rawPeer();
        const frames = pieces.map(({ text }, n) => ({ jsonrpc: '2.0', method: 'note', params: { n, text } }));
        const collected = Promise.all(frames.map(() => peer.next()));
        for (const [n, { form, wait }] of pieces.entries()) {
          const frame = frames[n];
          const line = JSON.stringify(frame);
          if (form === 'request') peer.connection.request(anyRequest('note'), frame?.params).catch(() => {});
          const written =
            form === 'notify'
              ? peer.connection.notify(note, frame?.params)
              : form === 'text'
                ? peer.connection.notifyRaw(line)
                : form === 'bytes' && peer.connection.notifyRaw(Buffer.from(line));
          if (wait) await written;
        }
        const received = (await collected).map(({ id: _id, ...frame }) => frame);
        expect(received).toEqual(JSON.parse(JSON.stringify(frames)));
        peer.toConnection.end();
      }),
      { numRuns: 40 },
    );
  });

  test('[ACP-9] an outbox reports a broken stream once and rejects whoever waits', async () => {
    const output = new Gate();
    const broken: unknown[] = [];
    const outbox = new Outbox(output, (reason) => broken.push(reason));
    void outbox.push('x'.repeat(100_000));
    const cause = new Error('EPIPE');
    const gone = { name: 'HangUpError', kind: 'transport', cause };
    const waiting = expect(outbox.ready()).rejects.toMatchObject(gone);
    output.destroy(cause);
    await waiting;
    await expect(outbox.push('more')).rejects.toMatchObject(gone);
    await outbox.flushed();
    expect(broken).toEqual([expect.objectContaining(gone)]);
  });
});

describe('lines over the outbound limit', () => {
  const limit = { maxOutboundLineBytes: 1000 };
  const big = { text: 'é'.repeat(600) };

  test('[ACP-5] a response becomes an error that names the limit', async () => {
    const peer = rawPeer((connection) => connection.onRequest(ask, () => big), limit);
    peer.send(call(1, 'ask'));
    expect(await peer.next()).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32603, message: expect.stringContaining('1000 bytes'), data: { maxBytes: 1000 } },
    });
    expect(peer.logged).toEqual([expect.stringContaining('warn: a result is over the limit')]);
  });

  test('[ACP-5] a notification, encoded already or not, is left out with a warning', async () => {
    const peer = rawPeer(() => {}, limit);
    await peer.connection.notify(note, big);
    await peer.connection.notifyRaw(JSON.stringify(big));
    await peer.connection.notifyRaw(Buffer.from(JSON.stringify(big)));
    await peer.connection.notify(note, { small: true });
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', method: 'note', params: { small: true } });
    expect(peer.logged).toHaveLength(3);
  });

  test('[ACP-5, PF-3] of several encoded messages only the one that is too long is left out', async () => {
    const peer = rawPeer(() => {}, limit);
    const frame = (n: number, length: number) => ({
      jsonrpc: '2.0',
      method: 'note',
      params: { n, text: 'é'.repeat(length) },
    });
    const lines = [frame(1, 300), frame(2, 600), frame(3, 300)].map((message) => JSON.stringify(message)).join('\n');
    void peer.connection.notifyRaw(Buffer.from(lines));
    void peer.connection.notifyRaw(lines);
    void peer.connection.notify(note, { n: 4 });
    peer.toConnection.end();
    expect((await peer.rest()).map(({ params }) => (params as { n: number }).n)).toEqual([1, 3, 1, 3, 4]);
    expect(peer.logged).toHaveLength(2);
  });

  test('[ACP-5] a request is rejected', async () => {
    const peer = rawPeer(() => {}, limit);
    await expect(peer.connection.request(ask, big)).rejects.toMatchObject({
      code: -32603,
      message: expect.stringContaining('limit of 1000 bytes'),
    });
  });

  test('[ACP-5] a line of exactly the limit passes', async () => {
    const peer = rawPeer(() => {}, limit);
    const empty = JSON.stringify({ jsonrpc: '2.0', method: 'note', params: { text: '' } }).length;
    await peer.connection.notify(note, { text: `${'é'.repeat(400)}${'x'.repeat(1000 - empty - 800)}` });
    await peer.connection.notify(note, { text: `${'é'.repeat(400)}${'x'.repeat(1001 - empty - 800)}` });
    peer.toConnection.end();
    expect(await peer.rest()).toHaveLength(1);
  });
});

test('[ACP-5] a peer that asks and never reads is not read any more once too much waits for it', async () => {
  const answered: number[] = [];
  const output = new Gate();
  const input = new PassThrough();
  const connection = createConnection(input, output, logTo([]));
  const result = { text: 'x'.repeat(8 * 1024 * 1024) };
  connection.onRequest(ask, () => {
    answered.push(answered.length);
    return result;
  });
  connection.listen();
  for (let id = 0; id < 40; id++) input.write(`${JSON.stringify(call(id, 'ask'))}\n`);
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(answered.length).toBeLessThan(12);
  output.release();
  input.end();
  await connection.closed;
  expect(answered.length).toBe(40);
});

test('[ACP-5, ACP-9] what was left unread when the output was ended holds up no reading', () => {
  const outbox = new Outbox(new Gate(), () => {});
  void outbox.push('x'.repeat(1_000_000));
  expect(outbox.backlog).toBe(1_000_000);
  outbox.close(new HangUpError('local', 'ended'));
  expect(outbox.backlog).toBe(0);
});
