import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import type { Subscription } from '../../src/daemon/ports.ts';
import { EventStreams } from '../../src/daemon/sse.ts';

/** A subscription that gives what it is told to, then waits. */
class Source implements Subscription {
  given = 0;
  closed = false;
  readonly #blocks: Uint8Array[];
  readonly #ends: boolean;

  constructor(blocks: readonly string[], ends = false) {
    this.#blocks = blocks.map((block) => Buffer.from(block));
    this.#ends = ends;
  }

  async next(signal: AbortSignal): Promise<Uint8Array | undefined> {
    this.given += 1;
    const block = this.#blocks.shift();
    if (block !== undefined || this.#ends) return block;
    await once(signal, 'abort');
    return undefined;
  }

  close(): void {
    this.closed = true;
  }
}

async function stream(source: Source, stalledMs?: number) {
  const streams = new EventStreams(stalledMs);
  let outgoing: ServerResponse | undefined;
  const server = createServer((_, response) => {
    outgoing = response;
    streams.start(source, response, {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const request = get({ port: (server.address() as { port: number }).port, host: '127.0.0.1', agent: false });
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { streams, response, request, outgoing: outgoing as unknown as ServerResponse };
}

test('[DM-9] a stream is its retry time and the blocks as they are, and ends with the subscription', async () => {
  const source = new Source(['id: 1\n\n', 'id: 2\n\n'], true);
  const { response, streams } = await stream(source);
  expect(response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
  });
  let text = '';
  for await (const chunk of response) text += chunk;
  expect(text).toBe('retry: 3000\n\nid: 1\n\nid: 2\n\n');
  expect(source.closed).toBe(true);
  expect(streams.open).toBe(0);
});

test('[DM-9] a client that leaves ends its subscription', async () => {
  const source = new Source(['id: 1\n\n']);
  const { request, outgoing, streams } = await stream(source);
  expect(streams.open).toBe(1);
  const closed = once(outgoing, 'close');
  request.destroy();
  await closed;
  await expect.poll(() => source.closed).toBe(true);
  expect(streams.open).toBe(0);
});

test('[DM-9] a client that does not read is waited for, not written to', async () => {
  const block = 'x'.repeat(1024 * 1024);
  const source = new Source(Array.from({ length: 200 }, () => block));
  const { response, outgoing } = await stream(source);
  response.pause();
  await expect.poll(() => outgoing.writableNeedDrain).toBe(true);
  expect(source.given).toBeLessThan(100);
  expect(outgoing.writableLength).toBeLessThan(4 * block.length);
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes >= 200 * block.length) break;
  }
  expect(source.given).toBeGreaterThanOrEqual(200);
});

test('[DM-9] a client that takes nothing is cut off after a while, even when memory was cleaned up meanwhile', async () => {
  const source = new Source(Array.from({ length: 200 }, () => 'x'.repeat(1024 * 1024)));
  const { response, outgoing, streams } = await stream(source, 300);
  response.on('error', () => {}).pause();
  await expect.poll(() => outgoing.writableNeedDrain).toBe(true);
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  await expect.poll(() => outgoing.destroyed).toBe(true);
  await expect.poll(() => source.closed).toBe(true);
  expect(streams.open).toBe(0);
});
