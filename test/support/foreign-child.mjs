// An agent on the official SDK that knows nothing of the reference's own methods. FOREIGN (JSON) says how it misbehaves.
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { agent, ndJsonStream, RequestError } from '@agentclientprotocol/sdk';

const as = JSON.parse(process.env.FOREIGN ?? '{}');
if (as.exitsAtOnce) process.exit(3);
if (as.ignoresSignals) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1_000_000);
}
if (as.says) process.stderr.write(as.says);

const question = { question: 'Which colour?', header: 'Colour', options: [{ label: 'Red' }, { label: 'Blue' }] };
const cancels = new Map();
const say = (client, sessionId, text) =>
  client.notify('session/update', {
    sessionId,
    update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
  });

async function ask(client, sessionId) {
  const cancelled = new Promise((resolve) =>
    cancels.set(sessionId, () => resolve({ outcome: { outcome: 'cancelled' } })),
  );
  const asked = client.request('session/request_permission', {
    sessionId,
    options: [
      { optionId: 'proceed_once', name: 'Submit', kind: 'allow_once' },
      { optionId: 'cancel', name: 'Cancel', kind: 'reject_once' },
    ],
    toolCall: {
      toolCallId: 'call_1',
      title: 'Ask user 1 question',
      _meta: { qwenInteractionKind: 'user_question', qwenQuestions: [question] },
    },
  });
  return Promise.race([asked, cancelled]);
}

const app = agent()
  .onRequest('initialize', () => {
    if (as.neverInitializes) return new Promise(() => {});
    return {
      protocolVersion: 1,
      agentCapabilities: { loadSession: true },
      ...(as.badNonce || as.liveness ? { _meta: { 'qwen.daemon.channelLiveness': { v: 1 } } } : {}),
    };
  })
  .onRequest('session/new', () => {
    if (as.diesOnNew) process.kill(process.pid, 'SIGKILL');
    if (as.refusesNew) throw new RequestError(-32000, 'sign in first');
    return { sessionId: randomUUID() };
  })
  .onRequest('session/load', async ({ params, client }) => {
    if (as.neverLoads) return new Promise(() => {});
    if (params.sessionId === '33333333-3333-4333-8333-333333333333') {
      throw new RequestError(-32002, `Resource not found: session:${params.sessionId}`);
    }
    for (let at = 1; at <= (as.streams ?? 0); at++) await say(client, params.sessionId, `old ${at}`);
    return as.open ? { _meta: { 'qwen.daemon.restoreAskUserQuestion': true } } : {};
  })
  .onRequest('session/prompt', async ({ params, client }) => {
    const [block] = params.prompt;
    if (block?.text === 'fail') throw new RequestError(-32603, 'the model broke');
    for (let at = 1; at <= (as.burst ?? 0); at++) await say(client, params.sessionId, `word ${at} `);
    if (block?.text === 'plain') return { stopReason: 'end_turn' };
    const { outcome } = await ask(client, block?.text === 'ask for nobody' ? randomUUID() : params.sessionId);
    return { stopReason: outcome.outcome === 'cancelled' ? 'cancelled' : 'end_turn' };
  })
  .onNotification('session/cancel', ({ params }) => cancels.get(params.sessionId)?.());
if (as.badNonce)
  app.onRequest(
    'qwen/status/channel/ping',
    (params) => params,
    () => ({ v: 1, nonce: 'another' }),
  );

app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
