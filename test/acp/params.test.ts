import type { AnyMessage } from '@agentclientprotocol/sdk';
import { agent, methods as sdk } from '@agentclientprotocol/sdk';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
// The SDK does not export its schemas, and its agent does not check what a client answers.
import {
  zCreateElicitationResponse,
  zRequestPermissionResponse,
} from '../../node_modules/@agentclientprotocol/sdk/dist/v1/schema/zod.gen.js';
import { RequestError } from '../../src/acp/errors.ts';
import * as methods from '../../src/acp/methods.ts';
import type { Parser } from '../../src/acp/rpc.ts';

const SESSION = { cwd: '/t', mcpServers: [] };
const LOAD = { ...SESSION, sessionId: 's' };
const STDIO = { name: 'x', command: '/c', args: ['a'], env: [{ name: 'A', value: 'b' }] };
const HTTP = { type: 'http', name: 'h', url: 'http://h', headers: [{ name: 'A', value: 'b' }] };
const TEXT = { type: 'text', text: 'x' };
const PROMPT = { sessionId: 's', prompt: [TEXT] };
const INITIALIZE = {
  protocolVersion: 1,
  clientInfo: { name: 'c', title: 't', version: '1' },
  clientCapabilities: { fs: { readTextFile: true, writeTextFile: false }, terminal: true, elicitation: { form: {} } },
};

/** The agent's methods: our parser, and params to begin with. */
const REQUESTS: Record<string, { readonly parse: Parser<unknown>; readonly seeds: readonly unknown[] }> = {
  initialize: {
    parse: methods.initialize.params,
    seeds: [
      INITIALIZE,
      { protocolVersion: 1 },
      { protocolVersion: '1' },
      { protocolVersion: 1.5 },
      { protocolVersion: -1 },
      { protocolVersion: 70_000 },
      { ...INITIALIZE, clientCapabilities: 'junk' },
      {
        ...INITIALIZE,
        clientCapabilities: { fs: 'junk', terminal: 'junk', auth: 5, session: [], elicitation: 7, _meta: 1 },
      },
      { ...INITIALIZE, clientInfo: { name: 5 } },
      { ...INITIALIZE, clientInfo: null },
    ],
  },
  authenticate: { parse: methods.authenticate.params, seeds: [{ methodId: 'x' }, {}, { methodId: 5 }] },
  'session/new': {
    parse: methods.newSession.params,
    seeds: [
      SESSION,
      { ...SESSION, cwd: 5 },
      { ...SESSION, mcpServers: null },
      { ...SESSION, mcpServers: {} },
      { ...SESSION, mcpServers: [{ name: 'x' }] },
      { ...SESSION, mcpServers: [STDIO, HTTP, { ...HTTP, type: 'sse' }] },
      { ...SESSION, mcpServers: [{ ...STDIO, args: null, env: null, _meta: 'junk' }] },
      { ...SESSION, mcpServers: [{ ...HTTP, headers: 'x' }] },
      { ...SESSION, mcpServers: [{ ...STDIO, type: 'http' }] },
      { ...SESSION, mcpServers: [{ ...HTTP, type: 'other' }] },
      { ...SESSION, _meta: 'junk' },
      { ...SESSION, _meta: null },
      { ...SESSION, _meta: [] },
      { ...SESSION, extra: 1 },
      { ...SESSION, additionalDirectories: null },
      { ...SESSION, additionalDirectories: ['/a'] },
      { ...SESSION, additionalDirectories: [5] },
      null,
      [],
      'x',
      {},
    ],
  },
  'session/load': {
    parse: methods.loadSession.params,
    seeds: [LOAD, SESSION, { ...LOAD, sessionId: null }, { ...LOAD, _meta: { a: 1 } }, { ...LOAD, mcpServers: null }],
  },
  'session/resume': {
    parse: methods.resumeSession.params,
    seeds: [LOAD, { sessionId: 's', cwd: '/t' }, { sessionId: 's' }, { ...LOAD, mcpServers: 'x' }],
  },
  'session/list': {
    parse: methods.listSessions.params,
    seeds: [{}, { cwd: 5 }, { cwd: null }, { cursor: 'x', cwd: '/t' }],
  },
  'session/close': { parse: methods.closeSession.params, seeds: [{ sessionId: 's' }, {}, { sessionId: 1 }] },
  'session/delete': { parse: methods.deleteSession.params, seeds: [{ sessionId: 's' }, {}, { sessionId: 1 }] },
  'session/set_mode': { parse: methods.setMode.params, seeds: [{ sessionId: 's', modeId: 'm' }, { sessionId: 's' }] },
  'session/set_config_option': {
    parse: methods.setConfigOption.params,
    seeds: [
      { sessionId: 's', configId: 'c', value: 'v' },
      { sessionId: 's', configId: 'c', value: true },
      { sessionId: 's', configId: 'c', type: 'boolean', value: true },
      { sessionId: 's', configId: 'c', type: 'boolean', value: 'v' },
      { sessionId: 's', configId: 'c' },
    ],
  },
  'session/prompt': {
    parse: methods.prompt.params,
    seeds: [
      PROMPT,
      { ...PROMPT, prompt: [] },
      { ...PROMPT, prompt: 'x' },
      { ...PROMPT, prompt: [{ type: 'text' }] },
      { ...PROMPT, prompt: [{ type: 'nope', text: 'x' }] },
      { ...PROMPT, prompt: [{ text: 'x' }] },
      { ...PROMPT, prompt: [null] },
      { ...PROMPT, prompt: [{ ...TEXT, annotations: 'junk' }] },
      {
        ...PROMPT,
        prompt: [{ ...TEXT, annotations: { audience: ['user', 'nobody', 5], priority: 'x', lastModified: 1 } }],
      },
      { ...PROMPT, prompt: [{ type: 'resource_link', uri: 'u', name: 'n', size: 'x', title: 5 }] },
      {
        ...PROMPT,
        prompt: [
          { type: 'image', data: 'd', mimeType: 'm' },
          { type: 'audio', data: 'd', mimeType: 'm' },
        ],
      },
      { ...PROMPT, prompt: [{ type: 'image', data: 5, mimeType: 'm' }] },
      { ...PROMPT, prompt: [{ type: 'resource', resource: { uri: 'u', text: 't', mimeType: 5 } }] },
      { ...PROMPT, prompt: [{ type: 'resource', resource: { uri: 'u', blob: 'b' } }] },
      { ...PROMPT, prompt: [{ type: 'resource', resource: { uri: 'u' } }] },
      { ...PROMPT, _meta: 7 },
      { prompt: [] },
    ],
  },
};

/** What a client may answer: our parser, and results to begin with. */
const RESULTS: Record<
  string,
  { readonly parse: Parser<unknown>; readonly judge: (result: unknown) => boolean; readonly seeds: readonly unknown[] }
> = {
  'session/request_permission': {
    parse: methods.requestPermission.result as Parser<unknown>,
    judge: (result) => zRequestPermissionResponse.safeParse(result).success,
    seeds: [
      { outcome: { outcome: 'selected', optionId: 'x' }, answers: { 0: 'a' } },
      { outcome: { outcome: 'cancelled' }, _meta: 'junk' },
      { outcome: { outcome: 'selected' } },
      { outcome: { outcome: 'other' } },
      { outcome: 'cancelled' },
      { outcome: null },
      {},
      null,
    ],
  },
  'elicitation/create': {
    parse: methods.createElicitation.result as Parser<unknown>,
    judge: (result) => zCreateElicitationResponse.safeParse(result).success,
    seeds: [
      { action: 'accept', content: { a: 'x', b: 1, c: true, d: ['y'] } },
      { action: 'accept', content: { a: {} } },
      { action: 'accept' },
      { action: 'decline' },
      { action: 'cancel', content: 5 },
      { action: 'other' },
      { action: 5 },
      {},
    ],
  },
};

const accepts = (parse: Parser<unknown>, value: unknown): boolean => {
  try {
    parse(structuredClone(value));
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ code: -32602, data: { issues: expect.any(Array) } });
    return false;
  }
};

/** The SDK's own verdict on a call, reached through its public agent. */
function judgeOfRequests() {
  const there = new TransformStream<AnyMessage, AnyMessage>();
  const back = new TransformStream<AnyMessage, AnyMessage>();
  const echo = () => ({}) as never;
  agent()
    .onRequest('initialize', () => ({ protocolVersion: 1 }))
    .onRequest(sdk.agent.authenticate, echo)
    .onRequest(sdk.agent.session.new, echo)
    .onRequest(sdk.agent.session.load, echo)
    .onRequest(sdk.agent.session.resume, echo)
    .onRequest(sdk.agent.session.list, echo)
    .onRequest(sdk.agent.session.close, echo)
    .onRequest(sdk.agent.session.delete, echo)
    .onRequest(sdk.agent.session.setMode, echo)
    .onRequest(sdk.agent.session.setConfigOption, echo)
    .onRequest(sdk.agent.session.prompt, echo)
    .connect({ readable: there.readable, writable: back.writable });
  const writer = there.writable.getWriter();
  const reader = back.readable.getReader();
  let id = 0;
  return async (method: string, params: unknown): Promise<boolean> => {
    await writer.write({ jsonrpc: '2.0', id: ++id, method, params } as AnyMessage);
    const { value } = await reader.read();
    return (value as { error?: { code: number } }).error?.code !== -32602;
  };
}

/** A value somewhere in which something was changed, removed or added. */
function mutated(seeds: readonly unknown[]): fc.Arbitrary<unknown> {
  const junk = fc.oneof(
    fc.constantFrom<unknown>(null, '', 'text', 'http', 'selected', 0, 1, 1.5, true, [], {}, [null], { type: 'text' }),
    fc.jsonValue({ maxDepth: 2 }),
  );
  return fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom('set', 'delete', 'add'), junk), { maxLength: 3 }),
    )
    .map(([seed, changes]) => {
      const root = { value: structuredClone(seed) };
      for (const [place, change, value] of changes) {
        const places = placesIn(root);
        const [parent, key] = places[place % places.length] as [Record<string, unknown>, string];
        if (change === 'set') parent[key] = structuredClone(value);
        else if (change === 'add' && isObject(parent[key]))
          (parent[key] as Record<string, unknown>)['_meta'] = structuredClone(value);
        else if (parent !== root && !Array.isArray(parent)) delete parent[key];
      }
      return root.value;
    });
}

function placesIn(value: object): [object, string][] {
  return Object.entries(value).flatMap(([key, member]) => [
    [value, key] as [object, string],
    ...(isObject(member) ? placesIn(member) : []),
  ]);
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Where we differ on purpose: `mcpServers` may be missing. */
const withMcpServers = (method: string, params: unknown): unknown =>
  ['session/new', 'session/load'].includes(method) &&
  isObject(params) &&
  !Array.isArray(params) &&
  !('mcpServers' in params)
    ? { ...params, mcpServers: [] }
    : params;

describe("our verdict is the SDK's", () => {
  const judge = judgeOfRequests();

  test.each(Object.keys(REQUESTS))('[ACP-4] on the params of %s', async (method) => {
    const { parse, seeds } = REQUESTS[method]!;
    for (const params of seeds) {
      expect([params, accepts(parse, params)]).toEqual([params, await judge(method, withMcpServers(method, params))]);
    }
    await fc.assert(
      fc.asyncProperty(mutated(seeds), async (params) => {
        expect(accepts(parse, params)).toBe(await judge(method, withMcpServers(method, params)));
      }),
      { numRuns: 300 },
    );
  });

  test.each(Object.keys(RESULTS))('[ACP-4, RS-7] on the result of %s', (method) => {
    const { parse, judge: verdict, seeds } = RESULTS[method]!;
    for (const result of seeds) expect([result, accepts(parse, result)]).toEqual([result, verdict(result)]);
    fc.assert(
      fc.property(mutated(seeds), (result) => {
        expect(accepts(parse, result)).toBe(verdict(result));
      }),
      { numRuns: 300 },
    );
  });
});

describe('what is forgiven', () => {
  test.each<[string, Parser<unknown>, unknown, unknown]>([
    ['missing mcpServers are none', methods.newSession.params, { cwd: '/t' }, SESSION],
    ['on load too', methods.loadSession.params, { cwd: '/t', sessionId: 's' }, LOAD],
    ['on resume too', methods.resumeSession.params, { cwd: '/t', sessionId: 's' }, LOAD],
    ['null mcpServers are none', methods.newSession.params, { cwd: '/t', mcpServers: null }, SESSION],
    ['a malformed _meta is absent', methods.newSession.params, { ...SESSION, _meta: 'junk' }, SESSION],
    ['an unknown member stays', methods.newSession.params, { ...SESSION, extra: 1 }, { ...SESSION, extra: 1 }],
    [
      'malformed capabilities are absent',
      methods.initialize.params,
      { protocolVersion: 1, clientCapabilities: 5 },
      { protocolVersion: 1 },
    ],
    [
      'a malformed capability is absent, its siblings stay',
      methods.initialize.params,
      {
        protocolVersion: 1,
        clientCapabilities: { fs: { readTextFile: 'x', writeTextFile: true }, terminal: 1, elicitation: { form: 5 } },
      },
      { protocolVersion: 1, clientCapabilities: { fs: { writeTextFile: true }, elicitation: {} } },
    ],
    [
      'malformed items of a list that forgives are left out',
      methods.prompt.params,
      { ...PROMPT, prompt: [{ ...TEXT, annotations: { audience: ['user', 5, 'assistant'] } }] },
      { ...PROMPT, prompt: [{ ...TEXT, annotations: { audience: ['user', 'assistant'] } }] },
    ],
    [
      'a server without arguments and environment has none',
      methods.newSession.params,
      { ...SESSION, mcpServers: [{ ...STDIO, args: null, env: null }] },
      { ...SESSION, mcpServers: [{ ...STDIO, args: [], env: [] }] },
    ],
  ])('[ACP-2, ACP-4] %s', (_, parse, value, expected) => {
    expect(parse(structuredClone(value))).toEqual(expected);
  });
});

describe('the path of a fault', () => {
  test.each<[string, Parser<unknown>, unknown, string]>([
    ['a member', methods.newSession.params, { ...SESSION, cwd: 5 }, '/cwd'],
    ['the whole value', methods.newSession.params, null, ''],
    [
      'an item of a list',
      methods.prompt.params,
      { ...PROMPT, prompt: [TEXT, { type: 'text', text: 5 }] },
      '/prompt/1/text',
    ],
    ['an unknown variant', methods.prompt.params, { ...PROMPT, prompt: [{ type: 'nope' }] }, '/prompt/0'],
    [
      'deep in a union without a tag',
      methods.newSession.params,
      { ...SESSION, mcpServers: [{ ...STDIO, args: ['a', 5] }] },
      '/mcpServers/0/args/1',
    ],
  ])('[ACP-4] %s is named', (_, parse, value, path) => {
    expect(() => parse(value)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(path),
        data: { issues: expect.arrayContaining([{ path, message: expect.stringMatching(/^must /) }]) },
      }),
    );
  });
});
