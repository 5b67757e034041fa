import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Frame, RawPeer } from './raw-peer.ts';
import { createConnection } from '../../src/acp/connection.ts';
import { anyNotification, anyRequest } from './any-method.ts';
import { call, logTo, rawPeer } from './raw-peer.ts';

const echo = anyRequest('echo');

function echoPeer(options: Parameters<typeof rawPeer>[1] = {}): RawPeer {
  return rawPeer((connection) => connection.onRequest(echo, (params) => ({ params })), options);
}

const refusal = (code: number) => ({ jsonrpc: '2.0', id: null, error: expect.objectContaining({ code }) });
const answer = (id: unknown, params: unknown = {}) => ({ jsonrpc: '2.0', id, result: { params } });

/** Sends the lines, then a request that must be answered as ever; gives what came before its answer. */
async function answersTo(peer: RawPeer, ...lines: (Frame | string)[]): Promise<Frame[]> {
  peer.send(...lines, call('last', 'echo'));
  const frames: Frame[] = [];
  for (let frame = await peer.next(); frame['id'] !== 'last'; frame = await peer.next()) frames.push(frame);
  return frames;
}

describe('what is no call', () => {
  test.each<[string, Frame | string, unknown[]]>([
    ['text that is no JSON', '{oops', [refusal(-32700)]],
    ['a torn message', '{"jsonrpc":"2.0","id":1,"method":"ec', [refusal(-32700)]],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"echo"}]', [refusal(-32600)]],
    ['an empty batch', '[]', [refusal(-32600)]],
    ['null', 'null', [refusal(-32600)]],
    ['a number', '5', [refusal(-32600)]],
    ['a string', '"echo"', [refusal(-32600)]],
    ['an empty object', '{}', [refusal(-32600)]],
    ['a request without jsonrpc', { id: 1, method: 'echo' }, [refusal(-32600)]],
    ['a request with another jsonrpc', { jsonrpc: '1.0', id: 1, method: 'echo' }, [refusal(-32600)]],
    ['a method that is no string', { jsonrpc: '2.0', id: 1, method: 5 }, [refusal(-32600)]],
    ['id null', call(null, 'echo'), [refusal(-32600)]],
    ['an id of another type', call({ a: 1 }, 'echo'), [refusal(-32600)]],
    ['a boolean id', call(true, 'echo'), [refusal(-32600)]],
    ['a response to nobody', { jsonrpc: '2.0', id: 0, result: {} }, []],
    ['a response with a foreign id', { jsonrpc: '2.0', id: 'q0-0', result: {} }, []],
    ['an error with id null', { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }, []],
    ['a response without jsonrpc', { id: 1, result: {} }, []],
    ['an id alone', { jsonrpc: '2.0', id: 1 }, []],
    ['an unknown notification', { jsonrpc: '2.0', method: 'nobody/knows', params: {} }, []],
    ['an unknown protocol-level notification', { jsonrpc: '2.0', method: '$/whatever' }, []],
    ["LSP's cancellation", { jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 1 } }, []],
    ["LSP's cancellation without params", { jsonrpc: '2.0', method: '$/cancelRequest' }, []],
    ['a cancellation of nothing', { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 9 } }, []],
    ['a cancellation without params', { jsonrpc: '2.0', method: '$/cancel_request' }, []],
    ['a cancellation of null', { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: null } }, []],
    ["LSP's trace and progress", '{"jsonrpc":"2.0","method":"$/progress","params":[1,2]}', []],
    ['a blank line', ' \t\r', []],
  ])('[ACP-5] %s has its defined answer and the connection goes on', async (_, line, expected) => {
    expect(await answersTo(echoPeer(), line)).toEqual(expected);
  });

  test('[ACP-2, ACP-5] an unknown method is -32601, params of any shape included', async () => {
    const peer = echoPeer();
    for (const params of [{}, [], [1, 2], null, undefined]) {
      peer.send({ jsonrpc: '2.0', id: 4, method: 'no/such', params });
      expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: 4, error: expect.objectContaining({ code: -32601 }) });
    }
  });

  test('[ACP-4] params reach the parser as they came: an array is not spread, null and nothing are not filled in', async () => {
    const peer = echoPeer();
    peer.send(
      call(1, 'echo', [1, 2]),
      call(2, 'echo', null),
      { jsonrpc: '2.0', id: 3, method: 'echo' },
      call(4, 'echo', 'text'),
    );
    expect([await peer.next(), await peer.next(), await peer.next(), await peer.next()]).toEqual([
      answer(1, [1, 2]),
      answer(2, null),
      { jsonrpc: '2.0', id: 3, result: {} },
      answer(4, 'text'),
    ]);
  });
});

describe('ids', () => {
  test.each([
    ['1 and "1"', [1, '1']],
    ['the same number twice', [7, 7]],
    ['the same string twice', ['x', 'x']],
    ['fractions, negatives and an empty string', [0.5, -1, 0, '']],
  ])('[ACP-5] %s in one chunk are each answered, in order', async (_, ids) => {
    const peer = echoPeer();
    peer.send(...ids.map((id, index) => call(id, 'echo', { index })));
    for (const [index, id] of ids.entries()) expect(await peer.next()).toEqual(answer(id, { index }));
  });
});

describe('lines', () => {
  test('[ACP-5] a line over the inbound limit is refused, what follows is served', async () => {
    const peer = echoPeer({ maxInboundLineBytes: 1000 });
    const tooLong = call(1, 'echo', { text: 'x'.repeat(1000) });
    expect(await answersTo(peer, tooLong, call(2, 'echo'))).toEqual([refusal(-32600), answer(2)]);
  });

  test('[ACP-5] the last line is served without its newline', async () => {
    const peer = echoPeer();
    peer.toConnection.end(JSON.stringify(call(1, 'echo')));
    expect(await peer.rest()).toEqual([answer(1)]);
  });

  test('[ACP-5] a byte order mark and CRLF are tolerated', async () => {
    const peer = echoPeer();
    peer.toConnection.write(`\u{feff}${JSON.stringify(call(1, 'echo'))}\r\n\r\n${JSON.stringify(call(2, 'echo'))}\r\n`);
    expect([await peer.next(), await peer.next()]).toEqual([answer(1), answer(2)]);
  });

  test('[ACP-5] text outside the basic plane and lone surrogates come back as they were', async () => {
    const peer = echoPeer();
    const params = { text: '😀 \u{2028} \u{0000} \ud800 \udc00' };
    peer.send(call(1, 'echo', params));
    expect(await peer.next()).toEqual(answer(1, params));
  });

  test('[ACP-5] any chunking of the bytes gives the same answers', async () => {
    const params = fc.jsonValue({ stringUnit: 'binary' });
    await fc.assert(
      fc.asyncProperty(
        fc.array(params, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
        async (values, sizes) => {
          const peer = echoPeer();
          const bytes = Buffer.from(values.map((value, id) => `${JSON.stringify(call(id, 'echo', value))}\n`).join(''));
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = sizes[i % sizes.length] ?? 1;
            peer.toConnection.write(bytes.subarray(at, at + size));
            at += size;
          }
          peer.toConnection.end();
          expect(await peer.rest()).toEqual(values.map((value, id) => JSON.parse(JSON.stringify(answer(id, value)))));
        },
      ),
      { numRuns: 40 },
    );
  });

  test('[ACP-4, ACP-5] whatever a line holds, it gets its defined answers and the next request is served', async () => {
    const key = fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error', '__proto__', 'other');
    const value = fc.oneof(
      fc.constantFrom('2.0', 'echo', 'x', null, 1, '1', true, [], {}, { id: 1 }, { requestId: 1 }),
      fc.jsonValue(),
    );
    const message = fc.dictionary(key, value).map((object) => JSON.stringify(object));
    const junk = fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[\r\n]/g, ' '));
    const line = fc.oneof(
      message,
      junk,
      fc.json().map((text) => text.replaceAll('\n', ' ')),
    );
    const peer = echoPeer();
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 5 }), async (lines) => {
        const frames = await answersTo(peer, ...lines);
        expect(frames.map(summary)).toEqual(lines.flatMap(expectedAnswer));
      }),
      { numRuns: 300 },
    );
    expect(peer.logged).toEqual([]);
  });
});

const summary = (frame: Frame) => ({ id: frame['id'], code: (frame['error'] as { code?: number } | undefined)?.code });

/** The rules of the protocol once more, as plainly as possible. */
function expectedAnswer(line: string): { id: unknown; code: number | undefined }[] {
  if (/^[ \t]*$/.test(line)) return [];
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return [{ id: null, code: -32700 }];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [{ id: null, code: -32600 }];
  const { jsonrpc, id, method } = value as Frame;
  if (!('method' in value)) {
    return 'id' in value || 'result' in value || 'error' in value ? [] : [{ id: null, code: -32600 }];
  }
  if (jsonrpc !== '2.0' || typeof method !== 'string') return [{ id: null, code: -32600 }];
  if (!('id' in value)) return [];
  if (typeof id !== 'string' && typeof id !== 'number') return [{ id: null, code: -32600 }];
  return [{ id, code: method === 'echo' ? undefined : -32601 }];
}

test('[ACP-5] no more is read ahead than was handled', async () => {
  let read = 0;
  let handled = 0;
  const source = Readable.from(
    (function* () {
      for (; read < 3000; read++) yield Buffer.from(`${JSON.stringify(call(read, 'echo'))}\n`.repeat(10));
    })(),
    { objectMode: false, highWaterMark: 1024 },
  );
  let ahead = 0;
  const connection = createConnection(source, new PassThrough().resume(), logTo([]));
  connection.onRequest(echo, () => {
    ahead = Math.max(ahead, read * 10 - handled++);
    return {};
  });
  connection.listen();
  await connection.closed;
  expect(handled).toBe(30_000);
  expect(ahead).toBeLessThan(1000);
});

describe('order', () => {
  test('[ACP-3] notifications and requests are handled in the order of the wire', async () => {
    const seen: unknown[] = [];
    const peer = rawPeer((connection) => {
      connection.onNotification(anyNotification('note'), (params) => void seen.push(params));
      connection.onRequest(echo, (params) => {
        seen.push(params);
        return {};
      });
    });
    const lines = Array.from({ length: 200 }, (_, n) =>
      n % 3 === 0 ? call(n, 'echo', { n }) : { jsonrpc: '2.0', method: 'note', params: { n } },
    );
    await answersTo(peer, ...lines);
    expect(seen.slice(0, 200)).toEqual(lines.map((_, n) => ({ n })));
  });

  test('[ACP-3] a response is delivered after the notifications that came before it', async () => {
    const seen: string[] = [];
    const peer = rawPeer((connection) =>
      connection.onNotification(anyNotification('note'), () => void seen.push('note')),
    );
    const asked = peer.connection.request(anyRequest('ask'), {}).then(() => seen.push('response'));
    const { id } = await peer.next();
    const note = { jsonrpc: '2.0', method: 'note' };
    peer.send(note, note, { jsonrpc: '2.0', id, result: {} }, note);
    await asked;
    expect(seen).toEqual(['note', 'note', 'response']);
  });
});
