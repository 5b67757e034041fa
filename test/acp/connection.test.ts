import { getEventListeners, once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createConnection } from '../../src/acp/connection.ts';
import { DeadlineError, HangUpError, RequestError } from '../../src/acp/errors.ts';
import { objectWith } from '../../src/acp/params.ts';
import type { RequestMethod } from '../../src/acp/rpc.ts';
import { anyNotification, anyRequest } from './any-method.ts';
import { call, linked, rawPeer } from './raw-peer.ts';

const ask = anyRequest('ask');
const hang = anyRequest('hang');
const note = anyNotification('note');
const never = new Promise<never>(() => {});

/** Waits for the signal, then throws its reason. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

describe('errors of a handler', () => {
  test.each<[string, () => unknown, object]>([
    [
      'its RequestError as it is',
      () => {
        throw new RequestError(-32021, 'changed', { code: 'x' });
      },
      { code: -32021, message: 'changed', data: { code: 'x' } },
    ],
    [
      'a RequestError without data',
      () => {
        throw RequestError.authRequired('set a key');
      },
      { code: -32000, message: 'set a key' },
    ],
    [
      'an unknown session',
      () => {
        throw RequestError.sessionNotFound('s');
      },
      { code: -32002, message: 'Resource not found: session:s', data: { uri: 'session:s', sessionId: 's' } },
    ],
    [
      'nothing of another exception',
      () => {
        throw new Error('secret /home/x');
      },
      { code: -32603, message: 'Internal error' },
    ],
    [
      'nothing of what is no Error',
      () => {
        throw 'secret';
      },
      { code: -32603, message: 'Internal error' },
    ],
    [
      'nothing of a later rejection',
      () => Promise.reject(new TypeError('secret')),
      { code: -32603, message: 'Internal error' },
    ],
    ['nothing of a result that is no JSON', () => ({ n: 1n }), { code: -32603, message: 'Internal error' }],
    [
      'what the given mapping says',
      () => {
        throw new RangeError('known');
      },
      { code: -32602, message: 'mapped known' },
    ],
  ])('[ACP-4] the peer is told %s', async (_, handler, error) => {
    const toRequestError = (e: unknown) =>
      e instanceof RangeError ? new RequestError(-32602, `mapped ${e.message}`) : undefined;
    const peer = rawPeer((connection) => connection.onRequest(ask, handler), { toRequestError });
    peer.send(call(1, 'ask'));
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: 1, error });
  });

  test('[ACP-4] the cause of an internal error is logged, that of a refusal is not', async () => {
    const peer = rawPeer((connection) => {
      connection.onRequest(ask, () => {
        throw new Error('cause');
      });
      connection.onRequest(hang, () => {
        throw RequestError.authRequired('key');
      });
    });
    peer.send(call(1, 'ask'), call(2, 'hang'));
    await peer.next();
    await peer.next();
    expect(peer.logged).toEqual(['error: ask failed']);
  });

  test('[ACP-4] a notification handler that throws costs a warning, nothing else', async () => {
    const peer = rawPeer((connection) => {
      connection.onRequest(ask, () => ({}));
      connection.onNotification({ ...note, params: objectWith('text') }, () => {});
    });
    peer.send({ jsonrpc: '2.0', method: 'note', params: { text: 5 } }, call(1, 'ask'));
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    expect(peer.logged).toEqual(['warn: the notification note was not handled']);
  });

  test('[ACP-4] params that do not parse are -32602 and the handler does not run', async () => {
    let ran = false;
    const peer = rawPeer((connection) =>
      connection.onRequest({ ...ask, params: objectWith<object>('cwd') }, () => {
        ran = true;
        return {};
      }),
    );
    for (const params of [undefined, null, [], [{}], 'x', {}, { cwd: 5 }]) {
      peer.send({ jsonrpc: '2.0', id: 1, method: 'ask', params });
      expect(await peer.next()).toEqual({
        jsonrpc: '2.0',
        id: 1,
        error: {
          code: -32602,
          message: expect.any(String),
          data: { issues: [expect.objectContaining({ path: expect.any(String) })] },
        },
      });
    }
    expect(ran).toBe(false);
  });
});

test('[ACP-12] a method is served under each of its names', async () => {
  const peer = rawPeer((connection) =>
    connection.onRequest({ ...ask, aliases: ['_ask', 'ask2'] }, () => ({ ok: true })),
  );
  for (const name of ['ask', '_ask', 'ask2']) {
    peer.send(call(name, name));
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: name, result: { ok: true } });
  }
});

describe('cancellation', () => {
  test.each([1, '1', 'a'])(
    '[ACP-7] $/cancel_request aborts the signal of request %j, which answers -32800',
    async (id) => {
      let reason: unknown;
      const peer = rawPeer((connection) =>
        connection.onRequest(hang, (_, signal) => {
          signal.addEventListener('abort', () => (reason = signal.reason));
          return untilAborted(signal);
        }),
      );
      peer.send(call(id, 'hang'), { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: id } });
      expect(await peer.next()).toEqual({ jsonrpc: '2.0', id, error: { code: -32800, message: 'Request cancelled' } });
      expect(reason).toBeInstanceOf(RequestError);
    },
  );

  test('[ACP-7] only the cancelled request ends, and a handler may answer in spite of it', async () => {
    const peer = rawPeer((connection) => {
      connection.onRequest(hang, (_, signal) => untilAborted(signal).catch(() => ({ stopReason: 'cancelled' })));
      connection.onRequest(ask, () => ({}));
    });
    peer.send(
      call(1, 'hang'),
      call('1', 'hang'),
      { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: '1' } },
      call(3, 'ask'),
    );
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: '1', result: { stopReason: 'cancelled' } });
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: 3, result: {} });
  });

  test('[ACP-7] a request whose signal aborts rejects at once, is withdrawn, and its late answer finds nobody', async () => {
    const peer = rawPeer();
    const stop = new AbortController();
    const asked = peer.connection.request(ask, { a: 1 }, { signal: stop.signal });
    const { id } = await peer.next();
    stop.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: id } });
    peer.send({ jsonrpc: '2.0', id, result: {} });
    const again = peer.connection.request(ask, {});
    const second = await peer.next();
    expect(second['id']).not.toBe(id);
    peer.send({ jsonrpc: '2.0', id: second['id'], result: { late: false } });
    expect(await again).toEqual({ late: false });
    expect(peer.logged).toEqual([]);
  });

  test('[ACP-7] a request with an aborted signal is not sent', async () => {
    const peer = rawPeer((connection) => connection.onRequest(ask, () => ({})));
    await expect(peer.connection.request(ask, {}, { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow(
      'before',
    );
    peer.send(call(1, 'ask'));
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  });

  test('[ACP-13] a request that is not answered by its deadline is given up and withdrawn', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const peer = rawPeer();
    const asked = peer.connection.request(ask, {}, { deadlineMs: 2000 });
    const refused = expect(asked).rejects.toThrow(DeadlineError);
    const { id } = await peer.next();
    vi.advanceTimersByTime(2000);
    await refused;
    expect(await peer.next()).toEqual({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: id } });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('[ACP-13] an answer in time leaves no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const peer = rawPeer();
    const asked = peer.connection.request(ask, {}, { deadlineMs: 2000 });
    peer.send({ jsonrpc: '2.0', id: (await peer.next())['id'], result: { ok: 1 } });
    expect(await asked).toEqual({ ok: 1 });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('answers of the peer', () => {
  const parsed: RequestMethod<unknown, unknown> = { ...ask, result: objectWith('outcome') };

  test.each<[string, object, object]>([
    [
      'an error',
      { error: { code: -32002, message: 'gone', data: { a: 1 } } },
      { code: -32002, message: 'gone', data: { a: 1 } },
    ],
    ['an error beside a null result', { result: null, error: { code: 1, message: 'old style' } }, { code: 1 }],
    [
      'a result that does not parse',
      { result: {} },
      { code: -32603, data: { issues: [{ path: '/outcome', message: 'must be string' }] } },
    ],
    ['a null result', { result: null }, { code: -32603 }],
    ['neither result nor error', {}, { code: -32603 }],
    ['an error of no shape', { error: 'no' }, { code: -32603 }],
    ['an error without a message', { error: { code: 5 } }, { code: -32603 }],
    ['a response without jsonrpc', { jsonrpc: undefined, result: { outcome: 'x' } }, { code: -32603 }],
  ])('[RS-7] %s rejects the request with a RequestError', async (_, response, error) => {
    const peer = rawPeer();
    const asked = peer.connection.request(parsed, {});
    const refused = expect(asked).rejects.toMatchObject({ name: 'RequestError', ...error });
    peer.send({ jsonrpc: '2.0', id: (await peer.next())['id'], ...response });
    await refused;
  });

  test.each([
    ['its members that the schema does not know', { outcome: 'x', answers: { 0: 'y' } }],
    ['an old-style null error', { outcome: 'x' }],
  ])('[RS-3] a result is passed on with %s', async (_, result) => {
    const peer = rawPeer();
    const asked = peer.connection.request(parsed, {});
    peer.send({ jsonrpc: '2.0', id: (await peer.next())['id'], result, error: null });
    expect(await asked).toEqual(result);
  });

  test("[ACP-5] an answer with the number inside our id, or with another prefix, is nobody's", async () => {
    const peer = rawPeer();
    const asked = peer.connection.request(ask, {});
    const id = (await peer.next())['id'] as string;
    const number = Number(/\d+$/.exec(id)?.[0]);
    peer.send(
      { jsonrpc: '2.0', id: number, result: { wrong: 1 } },
      { jsonrpc: '2.0', id: `${id}0`, result: { wrong: 2 } },
      { jsonrpc: '2.0', id: id.replace(/\d+$/, (n) => `0${n}`), result: { wrong: 3 } },
      { jsonrpc: '2.0', id, result: { right: 1 } },
    );
    expect(await asked).toEqual({ right: 1 });
  });
});

test('[ACP-6] ids of outbound requests are strings that no other connection uses', async () => {
  const ids = new Set<unknown>();
  for (let n = 0; n < 20; n++) {
    const peer = rawPeer();
    for (let m = 0; m < 3; m++) {
      peer.connection.request(ask, {}).catch(() => {});
      const { id } = await peer.next();
      expect(id).toBeTypeOf('string');
      ids.add(id);
    }
    peer.toConnection.end();
  }
  expect(ids.size).toBe(60);
});

describe('after a response', () => {
  test('[ACP-3, BT-9] what a handler registers follows its response on the wire, and nothing overtakes it', async () => {
    const shared = { sessionId: 's' };
    const answer: (() => void)[] = [];
    const peer = rawPeer((connection) =>
      connection.onRequest(ask, async (params, _signal, afterResponse) => {
        afterResponse(() => void connection.notify(note, params));
        await new Promise<void>((resolve) => {
          answer.push(resolve);
          if (answer.length === 2) for (const go of answer) go();
        });
        return shared;
      }),
    );
    peer.send(call(1, 'ask', { n: 1 }), call(2, 'ask', { n: 2 }));
    expect([await peer.next(), await peer.next(), await peer.next(), await peer.next()]).toEqual([
      { jsonrpc: '2.0', id: 1, result: shared },
      { jsonrpc: '2.0', method: 'note', params: { n: 1 } },
      { jsonrpc: '2.0', id: 2, result: shared },
      { jsonrpc: '2.0', method: 'note', params: { n: 2 } },
    ]);
  });

  test('[ACP-3, ACP-5] what was to follow a result that is too long for a line follows the error in its place', async () => {
    const peer = rawPeer(
      (connection) =>
        connection.onRequest(ask, (params, _signal, afterResponse) => {
          afterResponse(() => void connection.notify(note, params));
          return { text: 'x'.repeat(2_000) };
        }),
      { maxOutboundLineBytes: 1_000 },
    );
    peer.send(call(1, 'ask', { n: 1 }));
    expect([await peer.next(), await peer.next()]).toMatchObject([
      { id: 1, error: { code: -32603 } },
      { method: 'note', params: { n: 1 } },
    ]);
  });

  test('[ACP-3] a request that fails is followed by nothing', async () => {
    const followed: string[] = [];
    const peer = rawPeer((connection) =>
      connection.onRequest(ask, (_, _signal, afterResponse) => {
        afterResponse(() => followed.push('never'));
        throw RequestError.authRequired('key');
      }),
    );
    peer.send(call(1, 'ask'));
    await peer.next();
    peer.toConnection.end();
    await peer.connection.closed;
    expect(followed).toEqual([]);
  });
});

describe('the end of the connection', () => {
  test('[ACP-9] at EOF handlers are aborted with the reason, answer, and only then the output ends', async () => {
    const reasons: unknown[] = [];
    const peer = rawPeer((connection) =>
      connection.onRequest(hang, async (_, signal) => {
        await untilAborted(signal).catch((reason: unknown) => reasons.push(reason));
        await connection.notify(note, { last: true });
        return { stopReason: 'cancelled' };
      }),
    );
    peer.toConnection.end(`${JSON.stringify(call(1, 'hang'))}\n`);
    expect(await peer.rest()).toEqual([
      { jsonrpc: '2.0', method: 'note', params: { last: true } },
      { jsonrpc: '2.0', id: 1, result: { stopReason: 'cancelled' } },
    ]);
    await peer.connection.closed;
    expect(reasons).toEqual([expect.objectContaining({ name: 'HangUpError', kind: 'eof' })]);
    expect(peer.toConnection.destroyed).toBe(true);
  });

  test('[ACP-9] at EOF what waits for the peer is rejected, later calls too', async () => {
    const peer = rawPeer();
    const asked = peer.connection.request(ask, {});
    const refused = expect(asked).rejects.toThrow(HangUpError);
    peer.toConnection.end();
    await refused;
    await peer.connection.closed;
    await expect(peer.connection.request(ask, {})).rejects.toThrow(HangUpError);
    await expect(peer.connection.notify(note, {})).rejects.toThrow(HangUpError);
    await expect(peer.connection.notifyRaw('{}')).rejects.toThrow(HangUpError);
    expect(peer.connection.signal.aborted).toBe(true);
  });

  test('[ACP-9] hangUp ends it as EOF does, with a reason of its own, once', async () => {
    const peer = rawPeer((connection) =>
      connection.onRequest(hang, async (_, signal) => {
        await connection.notify(note, { started: true });
        return untilAborted(signal);
      }),
    );
    peer.send(call(1, 'hang'));
    await peer.next();
    peer.connection.hangUp('SIGTERM');
    peer.connection.hangUp('again');
    expect(await peer.rest()).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32800, message: 'Request cancelled' } },
    ]);
    await peer.connection.closed;
    expect(peer.connection.signal.reason).toMatchObject({ kind: 'local', message: 'SIGTERM' });
    expect(peer.toConnection.destroyed).toBe(true);
  });

  test('[ACP-9] a request that arrives after the end has begun is answered with its signal aborted', async () => {
    let serve: () => void = () => {};
    const served = new Promise<void>((resolve) => {
      serve = resolve;
    });
    const peer = rawPeer((connection) => {
      connection.onRequest(hang, async (_, signal) => {
        await connection.notify(note, { started: true });
        await untilAborted(signal).catch(() => {});
        peer.send(call(2, 'ask'));
        await served;
        return {};
      });
      connection.onRequest(ask, (_, signal) => {
        serve();
        return { aborted: signal.aborted };
      });
    });
    peer.send(call(1, 'hang'));
    await peer.next();
    peer.connection.hangUp('SIGTERM');
    expect(await peer.rest()).toEqual([
      { jsonrpc: '2.0', id: 2, result: { aborted: true } },
      { jsonrpc: '2.0', id: 1, result: {} },
    ]);
  });

  test('[ACP-9] a handler that ignores its signal is not waited for longer than the grace period', async () => {
    const peer = rawPeer((connection) => connection.onRequest(hang, () => never), { graceMs: 20 });
    peer.toConnection.end(`${JSON.stringify(call(1, 'hang'))}\n`);
    await peer.connection.closed;
    expect(peer.logged).toEqual(['warn: the connection was closed before everything had been answered and sent']);
  });

  test('[ACP-9] a peer that reads no more does not keep the connection open', async () => {
    const peer = rawPeer(() => {}, { graceMs: 20 });
    peer.fromConnection.pause();
    void peer.connection.notify(note, { text: 'x'.repeat(1_000_000) }).catch(() => {});
    peer.toConnection.end();
    await peer.connection.closed;
    expect(peer.fromConnection.destroyed).toBe(true);
  });

  test('[ACP-9] a broken output ends it, and no rejection is left without an owner', async () => {
    const stray: unknown[] = [];
    const note1 = (reason: unknown) => void stray.push(reason);
    process.on('unhandledRejection', note1);
    onTestFinished(() => void process.off('unhandledRejection', note1));
    const peer = rawPeer((connection) => connection.onRequest(hang, (_, signal) => untilAborted(signal)));
    peer.send(call(1, 'hang'));
    const asked = expect(peer.connection.request(ask, {})).rejects.toThrow(HangUpError);
    peer.fromConnection.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await asked;
    await peer.connection.closed;
    expect(peer.connection.signal.reason).toMatchObject({ kind: 'transport' });
    expect(peer.toConnection.destroyed).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(stray).toEqual([]);
  });

  test.each(['output', 'input and then its output'])(
    '[ACP-9, CLI-4] a handler that was writing when the peer closed its %s is no internal error to be logged',
    async (closed) => {
      const peer = rawPeer((connection) =>
        connection.onRequest(hang, async () => {
          for (;;) await connection.notify(note, { text: 'x'.repeat(1 << 20) });
        }),
      );
      peer.fromConnection.pause();
      peer.send(call(1, 'hang'));
      await once(peer.fromConnection, 'readable');
      if (closed !== 'output') {
        peer.toConnection.end();
        await onceAborted(peer.connection.signal);
      }
      peer.fromConnection.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      await peer.connection.closed;
      expect(peer.logged).toEqual([]);
    },
  );

  test('[ACP-9] a broken input ends it', async () => {
    const peer = rawPeer();
    peer.toConnection.destroy(new Error('read ECONNRESET'));
    await peer.connection.closed;
    expect(peer.connection.signal.reason).toMatchObject({ kind: 'transport' });
  });

  test('[ACP-9] an input that was over before listening ends it', async () => {
    const { left } = linked();
    left.input.destroy();
    await once(left.input, 'close');
    const connection = createConnection(left.input, left.output, silent);
    connection.listen();
    await connection.closed;
    expect(connection.signal.aborted).toBe(true);
  });

  test('[ACP-9] end() shows the peer the end, whose last words are still read', async () => {
    const words: unknown[] = [];
    const peer = rawPeer((connection) => connection.onNotification(note, (params) => void words.push(params)));
    await peer.connection.notify(note, { first: true });
    peer.connection.end();
    expect(await peer.rest()).toEqual([{ jsonrpc: '2.0', method: 'note', params: { first: true } }]);
    peer.send({ jsonrpc: '2.0', method: 'note', params: { last: true } });
    peer.toConnection.end();
    await peer.connection.closed;
    expect(words).toEqual([{ last: true }]);
    expect(peer.connection.signal.reason).toMatchObject({ kind: 'eof' });
  });

  test('[ACP-9] a request after end() fails as a hang-up, not as an answer of the peer', async () => {
    const peer = rawPeer();
    peer.connection.end();
    await expect(peer.connection.request(ask, {})).rejects.toMatchObject({ name: 'HangUpError', kind: 'local' });
  });
});

const silent = { debug() {}, info() {}, warn() {}, error() {} };

test('[ACP-9, ACP-13] 25,000 requests over one signal leak no listeners and no memory', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning.message);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const { left, right } = linked();
  const a = createConnection(left.input, left.output, silent);
  const b = createConnection(right.input, right.output, silent);
  b.onRequest(ask, () => ({}));
  a.listen();
  b.listen();
  const long = new AbortController();
  const ends = Array.from({ length: 20 }, () => () => {});
  for (const end of ends) a.signal.addEventListener('abort', end);
  const round = async (count: number) => {
    for (let n = 0; n < count; n += 8) {
      await Promise.all(Array.from({ length: 8 }, () => a.request(ask, {}, { signal: long.signal })));
    }
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = await round(5_000);
  const after = await round(20_000);
  expect(getEventListeners(long.signal, 'abort')).toEqual([]);
  expect(warnings).toEqual([]);
  expect(after - before).toBeLessThan(2 * 1024 * 1024);
}, 60_000);

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

async function onceAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
