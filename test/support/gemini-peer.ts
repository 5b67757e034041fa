import { expect, onTestFinished } from 'vitest';
import { type GeminiAnswer, type GeminiServer, chunk, startGeminiServer } from './gemini-server.ts';
import { Home, Peer } from './peer.ts';

export interface GeminiPeer {
  readonly server: GeminiServer;
  readonly home: Home;
  readonly peer: Peer;
  /** Another child on the same home and server. */
  again(): Promise<Peer>;
}

/** The child, its switch on, with a Gemini that gives these answers, or says `fine` for ever. */
export async function geminiPeer(...answers: readonly GeminiAnswer[]): Promise<GeminiPeer> {
  const server = await startGeminiServer(...answers, { chunks: [chunk([{ text: 'fine' }], 'STOP')] });
  onTestFinished(() => server.close());
  const env = { GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: server.url };
  const home = new Home();
  const args = ['--auth-type', 'gemini', '--model', 'gemini-test'];
  const again = () => Peer.start({ home, restore: true, script: null, args, env });
  return { server, home, peer: await again(), again };
}

/** A request's contents in words, one line each: roles, texts, calls and responses with their ids. */
// biome-ignore lint/suspicious/noExplicitAny: a provider's request
export function seenBy(body: any): string[] {
  // biome-ignore lint/suspicious/noExplicitAny: a provider's request
  return body.contents.map(({ role, parts }: any) => `${role}: ${parts.map(inWords).join(', ')}`);
}

// biome-ignore lint/suspicious/noExplicitAny: a provider's request
function inWords({ text, functionCall, functionResponse: response }: any): string {
  if (functionCall) return `call ${functionCall.id ?? functionCall.name}`;
  if (!response) return text;
  const id = response.id ?? response.name;
  return response.response.output ? `${id} ${response.response.output.split('\n').at(-1)}` : `${id} failed`;
}

/** Checks that every call has exactly one response, adjacent and in call order, and every response its call. */
// biome-ignore lint/suspicious/noExplicitAny: a provider's request
export function expectPaired(body: any): void {
  let calls: string[] = [];
  for (const { role, parts } of body.contents) {
    // biome-ignore lint/suspicious/noExplicitAny: a provider's request
    const responses = parts.flatMap(({ functionResponse: each }: any) => (each ? [each.id ?? each.name] : []));
    expect(responses).toEqual(calls);
    // biome-ignore lint/suspicious/noExplicitAny: a provider's request
    calls = parts.flatMap(({ functionCall: each }: any) => (each ? [each.id ?? each.name] : []));
    if (calls.length > 0) expect(role).toBe('model');
  }
  expect(calls).toEqual([]);
}
