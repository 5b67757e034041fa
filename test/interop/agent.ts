import { Peer } from '../support/peer.ts';
import type { Site } from './place.ts';
import { CLI, NODE_22, type Whose } from './programs.ts';

// biome-ignore lint/suspicious/noExplicitAny: results of every form
type Json = any;

/** One's child process in a place, on the same Node, with the ACP SDK's client on its pipes. */
export async function startAgent(whose: Whose, place: Site, restore = true): Promise<Peer> {
  return await Peer.start({
    home: place.home,
    command: [NODE_22, CLI[whose]],
    script: null,
    restore,
    env: { ...place.env },
  });
}

export const newSession = async (peer: Peer, { cwd }: Site): Promise<string> =>
  (await peer.request('session/new', { cwd, mcpServers: [] })).sessionId;

export interface Loaded {
  /** What came before the response, the list of commands left out. */
  readonly updates: readonly Json[];
  readonly result: Json;
}

export async function load(peer: Peer, { cwd }: Site, sessionId: string, meta?: object): Promise<Loaded> {
  const from = peer.updates(sessionId).length;
  const params = { sessionId, cwd, mcpServers: [], ...(meta && { _meta: meta }) };
  const result = await peer.request('session/load', params);
  const updates = peer.updates(sessionId).slice(from);
  return { result, updates: updates.filter(({ sessionUpdate }) => sessionUpdate !== 'available_commands_update') };
}

export const loadUpdates = async (peer: Peer, { cwd }: Site, sessionId: string): Promise<Json> =>
  await peer.request('qwen/session/loadUpdates', { sessionId, cwd });
