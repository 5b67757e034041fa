import { utimesSync } from 'node:fs';
import { type Asked, Home, Peer, type RecordedFrame, recordedFrames } from './peer.ts';
import { type Seen, seenIn } from './recordings.ts';

// biome-ignore lint/suspicious/noExplicitAny: frames and records of every form are compared
type Json = any;

export interface Played {
  /** What the reference sent, and what our child sent to the same frames. */
  readonly recorded: readonly Seen[];
  readonly ours: readonly Seen[];
  readonly home: Home;
  readonly sessionId: string;
}

/**
 * Sends the recorded client's or daemon's frames to the real child, each after the answers and questions that came before
 * it in the recording, and answers questions as recorded. A recorded `initialize` kills the child before it and starts the
 * next; the last one ends by its input's end. `placed` names the transcript that is there at the start; without one the
 * session is new, under the recorded id. `capabilities` are what the client has beside those that were recorded.
 */
export async function play(name: string, placed?: string, capabilities: object = {}): Promise<Played> {
  const exchange = recordedFrames(name) as (RecordedFrame & { readonly note?: string })[];
  const daemon = exchange.some(({ dir }) => dir === 'daemon->child');
  const sessionId = sessionIdOf(exchange);
  const home = new Home();
  if (placed !== undefined) touch(home.file(home.place(placed)), exchange);
  const restore = daemon || exchange.some(({ note }) => note?.includes('--restore-ask-user-question'));
  const script = scriptOf(exchange);
  const peers: Peer[] = [];
  const sent = new Map<unknown, Promise<unknown>>();
  const asked = new Map<unknown, Asked>();
  for (const { dir, frame } of exchange) {
    const peer = peers.at(-1);
    if (frame?.method === 'initialize') {
      await peer?.kill();
      sent.clear();
      asked.clear();
      const clientCapabilities = { ...frame.params.clientCapabilities, ...capabilities };
      peers.push(await Peer.start({ home, restore, script, initialize: { ...frame.params, clientCapabilities } }));
    } else if (frame === undefined || peer === undefined) continue;
    else if (isOut(dir)) {
      if (frame.method === undefined) answer(asked.get(frame.id), frame);
      else if (frame.id === undefined) await peer.notify(frame.method, frame.params);
      else sent.set(frame.id, send(peer, sessionId, frame));
    } else if (frame.method === 'session/request_permission') asked.set(frame.id, await peer.question());
    else if (frame.method === undefined) await sent.get(frame.id);
  }
  const exit = await peers.at(-1)?.eof();
  if (exit?.code !== 0 || peers.at(-1)?.unanswered !== 0) throw new Error(`the child ended: ${JSON.stringify(exit)}`);
  const wire = peers.flatMap((peer) => peer.wire);
  return {
    recorded: seenIn(
      exchange.map(({ dir, frame }) => ({ out: isOut(dir), message: frame })),
      daemon,
    ),
    ours: seenIn(
      wire.map(({ dir, message }) => ({ out: dir === 'out', message })),
      daemon,
    ),
    home,
    sessionId,
  };
}

const isOut = (dir: string): boolean => dir === 'client->child' || dir === 'daemon->child';

/** When a session was last updated is when its file was. */
function touch(file: string, exchange: readonly RecordedFrame[]): void {
  const updated = exchange.map(({ frame }) => frame?.result?.lastUpdated).find((time) => time !== undefined);
  if (updated === undefined) return;
  // Half a millisecond more: the file system keeps nanoseconds, made from a fraction of seconds that may be a bit short.
  const seconds = (Date.parse(updated) + 0.5) / 1000;
  utimesSync(file, seconds, seconds);
}

function sessionIdOf(exchange: readonly RecordedFrame[]): string {
  return exchange.map(({ frame }) => frame?.params?.sessionId ?? frame?.result?.sessionId).find((id) => id);
}

/** The recorded model: what it called at which words, an echo of responses, one plain reply, always the same usage. */
function scriptOf(exchange: readonly RecordedFrame[]): object {
  const frames = exchange.flatMap(({ frame }) => frame ?? []);
  const tokens = frames.map(({ params }) => params?.update?._meta?.usage).find((found) => found) ?? {};
  const usage = {
    promptTokenCount: tokens.inputTokens,
    candidatesTokenCount: tokens.outputTokens,
    totalTokenCount: tokens.totalTokens,
    thoughtsTokenCount: tokens.thoughtTokens,
    cachedContentTokenCount: tokens.cachedReadTokens,
  };
  const calls = frames.flatMap(({ method, params }, index) => {
    if (method !== 'session/request_permission') return [];
    const prompt = frames.slice(0, index).findLast((frame) => frame.method === 'session/prompt');
    const text = prompt.params.prompt[0]?.text;
    const { toolCallId: id, rawInput: args } = params.toolCall;
    return text ? [{ when: { text }, steps: [{ call: 'ask_user_question', args, id }, { usage }] }] : [];
  });
  const echo = { when: { response: true }, steps: [{ text: 'TOOL RESULT ECHO: {{response}}', deltas: 2 }, { usage }] };
  return { rules: [echo, ...calls, { steps: [{ text: 'PLAIN REPLY (plain)' }, { usage }] }] };
}

async function send(peer: Peer, sessionId: string, { method, params }: Json): Promise<void> {
  const forced = method === 'session/new' ? { _meta: { ...params._meta, 'qwen-code/sessionId': sessionId } } : {};
  await peer.request(method, { ...params, ...forced }).catch(() => {});
}

function answer(asked: Asked | undefined, { result, error }: Json): void {
  if (error) asked?.refuse(error.code, error.message);
  else asked?.answer(result);
}
