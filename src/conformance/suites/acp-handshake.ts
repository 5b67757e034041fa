import type { Context } from '../context.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { isObject, isReply, type Json } from '../wire.ts';
import { fitting, must, refused, should } from './rows.ts';

const PAGE = 'protocol/v1/initialization';

async function answersInitialize(context: Context) {
  const { initialized, peer } = await context.agent();
  const answer = peer.frames.at(-1);
  expectEqual(initialized.protocolVersion, 1, 'protocolVersion', answer);
  fitting(peer.frames);
  expect(isObject(initialized.agentCapabilities), 'there are no agentCapabilities', answer);
}

async function negotiatesDown(context: Context) {
  const { peer } = await context.agent({ initialize: null });
  const { result, frame } = await peer.request('initialize', { protocolVersion: 65_535 }, 3 * context.patience);
  const version = result?.protocolVersion;
  expect(Number.isInteger(version) && version >= 1 && version < 65_535, 'it offers no version that it supports', frame);
}

async function namesItself(context: Context) {
  const { initialized, peer } = await context.agent();
  const { name, version } = initialized.agentInfo ?? {};
  expect(name && version, 'agentInfo has no name or no version', peer.frames.at(-1));
}

async function listsAuthMethods(context: Context) {
  const { initialized, peer } = await context.agent();
  const methods: Json[] = initialized.authMethods ?? [];
  const answer = peer.frames.at(-1);
  expect(Array.isArray(methods), 'authMethods is no list', answer);
  expect(
    methods.every(({ id, name }) => id && name),
    'an auth method has no id or no name',
    answer,
  );
  expectEqual(new Set(methods.map(({ id }) => id)).size, methods.length, 'the number of different ids', answer);
}

async function offersNoTerminalLogin(context: Context) {
  const { initialized, peer } = await context.agent();
  const terminal = (initialized.authMethods ?? []).find(({ type }: Json) => type === 'terminal');
  expect(terminal === undefined, 'a terminal method is offered to a client that has none', peer.frames.at(-1));
}

async function refusesUnadvertised(context: Context) {
  const { peer, home } = await context.agent();
  const params = { sessionId: '00000000-0000-4000-8000-000000000000', cwd: home.cwd, mcpServers: [] };
  const absent = (['load', 'resume', 'list', 'close', 'delete'] as const).filter((need) =>
    context.findings.lacks.has(need),
  );
  if (absent.length === 0) context.skip('it advertises every session method');
  for (const name of absent) refused(await peer.request(`session/${name}`, params), -32601);
}

/** The rule by which the registry of agents admits them. */
async function answersFirst(context: Context) {
  const home = await context.freshHome({ empty: true });
  const { peer } = await context.agent({ home });
  const first = peer.frames.find(({ dir }) => dir === 'in');
  expect(first !== undefined && isReply(first) && first.value.result, 'the first line on stdout is another', first);
}

async function initializesOnce(context: Context) {
  const { peer } = await context.agent();
  await peer.request('initialize', { protocolVersion: 1 });
  refused(await peer.request('_conformance/unknown', {}), -32601);
}

export const HANDSHAKE: readonly Check[] = [
  must(
    'ACP-INIT-1',
    PAGE,
    'initialize answers with protocol version 1 and capabilities, as the schema has them.',
    answersInitialize,
  ),
  must(
    'ACP-INIT-2',
    PAGE,
    'A version that the agent does not support is answered with one that it does, not with an error.',
    negotiatesDown,
  ),
  should('ACP-INIT-3', PAGE, 'agentInfo has the name and version of the agent.', namesItself),
  must('ACP-INIT-4', PAGE, 'Every authentication method has an id of its own and a name.', listsAuthMethods),
  should(
    'ACP-INIT-5',
    'protocol/v1/authentication',
    'No login in a terminal is offered to a client that cannot open one.',
    offersNoTerminalLogin,
  ),
  must('ACP-INIT-6', PAGE, 'A session method that is not advertised is not served: -32601.', refusesUnadvertised),
  must('ACP-INIT-7', 'ACP registry', 'With an empty HOME the first line on stdout answers initialize.', answersFirst),
  should('ACP-INIT-8', PAGE, 'A second initialize does not end the agent.', initializesOnce),
];
