import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import { CLIENT_METHODS } from '../names.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { isNotification, isReply, isRequest } from '../wire.ts';
import { allowance, ended, must, opened, permissionIn, refused, should } from './rows.ts';

const RPC = 'JSON-RPC 2.0';
const EXTENSIONS = 'protocol/v1/extensibility';

const methodIsUnknown = (method: string) => async (context: Context) => {
  const { peer } = await context.agent();
  refused(await peer.request(method, {}), -32601);
};

async function notificationsAreIgnored(context: Context) {
  const { peer } = await context.agent();
  const sent = peer.notify('_conformance/unknown', { any: 'thing' });
  peer.notify('conformance/unknown', {});
  const barrier = await peer.barrier();
  const between = peer.frames
    .slice(peer.frames.indexOf(sent) + 1)
    .filter((frame) => isReply(frame) && frame !== barrier);
  expect(between.length === 0, 'a notification was answered', between[0]);
}

const WRONG_PARAMS: readonly (readonly [method: string, params: unknown])[] = [
  ['session/new', { cwd: 5, mcpServers: [] }],
  ['session/new', { cwd: '/', mcpServers: 'none' }],
  ['session/prompt', { prompt: [] }],
  ['session/prompt', { sessionId: 'x', prompt: 'hello' }],
];

async function wrongParamsAreRefused(context: Context) {
  const { peer } = await context.agent();
  for (const [method, params] of WRONG_PARAMS) refused(await peer.request(method, params), -32602);
}

const wrongLine = (line: string, code: number) => async (context: Context) => {
  const { peer } = await context.agent();
  const sent = peer.write(`${line}\n`);
  const isError = (frame: Parameters<typeof isReply>[0]) => isReply(frame) && 'error' in frame.value;
  const error = await peer.next(isError, `an error for ${line}`, { after: sent, patience: context.patience / 4 });
  expectEqual(error.value.error.code, code, 'the code', error);
};

async function junkIsSurvived(context: Context) {
  const { peer } = await context.agent();
  for (const line of ['{"jsonrpc":', 'hello', '[]', '5', 'null', '{}', '{"jsonrpc":"2.0","id":1,"method":7}'])
    peer.write(`${line}\n`);
  await peer.barrier();
}

const IDS = ['kit', 'ключ 钥匙 🔑', '', 0, -7, 1, '1', 9_007_199_254_740_991];

async function idsComeBack(context: Context) {
  const { peer } = await context.agent();
  for (const id of IDS) refused(await peer.ask(id, '_conformance/unknown', {}), -32601);
}

async function idsOfOneTextDiffer(context: Context) {
  const { peer } = await context.agent();
  const line = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, method: '_conformance/unknown', params: {} });
  const sent = peer.write(`${line(70)}\n${line('70')}\n`);
  await Promise.all([
    peer.reply(70, 'the answer to id 70', { after: sent }),
    peer.reply('70', 'the answer to id "70"', { after: sent }),
  ]);
}

async function manyAtOnce(context: Context) {
  const { peer } = await context.agent();
  const ids = Array.from({ length: 50 }, (_, index) => `at-once-${index}`);
  const sent = peer.write(
    ids.map((id) => `${JSON.stringify({ jsonrpc: '2.0', id, method: '_conformance/unknown', params: {} })}\n`).join(''),
  );
  await Promise.all(ids.map((id) => peer.reply(id, `the answer to ${id}`, { after: sent })));
  const replies = peer.frames.filter((frame) => isReply(frame) && ids.includes(frame.value.id));
  expectEqual(replies.length, ids.length, 'the number of answers');
}

async function turnsBlockNobody(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  const turn = agent.start(sessionId, CUES.hold);
  await context.model.asked(1);
  await agent.newSession();
  await peer.barrier();
  context.model.release();
  ended(await turn.done);
}

async function strangeRepliesAreIgnored(context: Context) {
  const { peer } = await context.agent();
  peer.send({ jsonrpc: '2.0', id: 'nobody-asked', result: {} });
  peer.send({ jsonrpc: '2.0', id: 4711, error: { code: -1, message: 'nobody asked' } });
  await peer.barrier();
}

async function ownMethodsAreNamedSo(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, CUES.say));
  if (!context.findings.lacks.has('question')) {
    const { asked, done } = await permissionIn(context, agent, sessionId);
    asked.answer(allowance(asked));
    ended(await done);
  }
  const strange = peer.frames.find(
    (frame) => (isRequest(frame) || isNotification(frame)) && !isNamedSo(frame.value.method),
  );
  expect(strange === undefined, `${strange?.value.method} is neither the protocol's nor begins with _`, strange);
}

const isNamedSo = (method: string) => method.startsWith('_') || CLIENT_METHODS.includes(method);

async function metaIsTolerated(context: Context) {
  const { peer, home } = await context.agent();
  const _meta = {
    'example.com/anything': [1, { two: 3 }],
    traceparent: '00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01',
  };
  await peer.call('session/new', { cwd: home.cwd, mcpServers: [], _meta });
}

export const CALLS: readonly Check[] = [
  must('ACP-CALL-1', RPC, 'A method that nobody knows is refused with -32601.', methodIsUnknown('conformance/unknown')),
  must(
    'ACP-CALL-2',
    EXTENSIONS,
    'An extension request that the agent does not know is refused with -32601.',
    methodIsUnknown('_conformance/unknown'),
  ),
  must(
    'ACP-CALL-3',
    EXTENSIONS,
    'Notifications that the agent does not know are ignored, without an answer.',
    notificationsAreIgnored,
  ),
  must('ACP-CALL-4', RPC, 'Params of the wrong form are refused with -32602.', wrongParamsAreRefused),
  should(
    'ACP-CALL-5',
    RPC,
    'A line that is no JSON is answered with -32700.',
    wrongLine('{"jsonrpc": "2.0", "id": 3, ', -32700),
  ),
  should(
    'ACP-CALL-6',
    RPC,
    'A message that is no request is answered with -32600.',
    wrongLine('{"jsonrpc":"2.0","id":3,"method":5}', -32600),
  ),
  must('ACP-CALL-7', RPC, 'Junk on stdin neither ends the agent nor makes it deaf.', junkIsSurvived),
  must(
    'ACP-CALL-8',
    RPC,
    'The id of an answer is the id of the request, a string or a number, whatever its value.',
    idsComeBack,
  ),
  must('ACP-CALL-9', RPC, 'The ids 70 and "70" are two requests, and both are answered.', idsOfOneTextDiffer),
  must('ACP-CALL-10', RPC, 'Fifty requests that come at once are each answered once.', manyAtOnce),
  must('ACP-CALL-11', 'protocol/v1/prompt-turn', 'Requests are answered while a turn runs.', turnsBlockNobody, {
    needs: ['model'],
  }),
  must('ACP-CALL-12', RPC, 'An answer to nothing that was asked is ignored.', strangeRepliesAreIgnored),
  must(
    'ACP-CALL-13',
    EXTENSIONS,
    'Methods of its own that the agent calls begin with an underscore.',
    ownMethodsAreNamedSo,
    { needs: ['turn'] },
  ),
  must('ACP-CALL-14', EXTENSIONS, '_meta with keys that the agent does not know changes nothing.', metaIsTolerated, {
    needs: ['session'],
  }),
];
