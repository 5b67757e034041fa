import { expect, test } from 'vitest';
import { callIds, cards, responseIds } from '../support/evidence.ts';
import { ask, Peer } from '../support/peer.ts';

const QUESTION = ask('Which colour?', 'Colour', ['Red', 'Blue']);
const SCRIPT = {
  rules: [
    {
      when: { text: 'fails' },
      steps: [{ text: 'let me ask. ' }, QUESTION, QUESTION, { fault: 'server', status: 503 }],
    },
    { when: { text: 'waits' }, steps: [{ text: 'let me ask. ' }, QUESTION, QUESTION, { wait: 'abort' }] },
    { steps: [{ text: 'plain' }] },
  ],
};

/** What breaks an answer off behind its calls, and how the turn ends. */
const BREAKS: readonly {
  by: string;
  prompt: string;
  act: (peer: Peer, sessionId: string) => Promise<unknown>;
  end: unknown;
}[] = [
  { by: 'a fault of the provider', prompt: 'fails', act: async () => {}, end: { code: -32603 } },
  {
    by: 'a cancel',
    prompt: 'waits',
    act: (peer, sessionId) => peer.notify('session/cancel', { sessionId }),
    end: { stopReason: 'cancelled' },
  },
  {
    by: 'the next prompt',
    prompt: 'waits',
    act: (peer, sessionId) => peer.prompt(sessionId, 'next'),
    end: { stopReason: 'cancelled' },
  },
];

test.each(BREAKS)(
  '[ACP-7, ACP-8, MD-4, TR-9] calls of an answer that $by breaks off are not recorded, and their cards are closed',
  async ({ prompt, act, end }) => {
    const peer = await Peer.start({ restore: true, script: SCRIPT });
    const id = await peer.newSession();
    const turn = peer.prompt(id, prompt).catch((error: unknown) => error);
    await peer.until(() => cards(peer, id).length >= 2);
    await act(peer, id);
    expect(await turn).toMatchObject(end as object);
    const opened = ['tool_call pending', 'tool_call pending'];
    expect(cards(peer, id)).toEqual([...opened, 'tool_call_update failed', 'tool_call_update failed']);
    expect([callIds(peer.home.records(id)), responseIds(peer.home.records(id))]).toEqual([[], []]);
    expect(peer.unanswered).toBe(0);
    expect((await peer.prompt(id, 'next')).stopReason).toBe('end_turn');
  },
);
