import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ASK, as, BLUE, Listener, Place, TEXT } from '../support/bridge.ts';
import { chunk } from '../support/gemini-server.ts';

/** Absolute path of the reference's `cli.js`; it wants Node 22.12 or later, so these tests have to run on that. */
const REFERENCE = process.env['QWEN_REFERENCE_CLI'];

const QUESTION = {
  question: 'Which colour?',
  header: 'Colour',
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
  multiSelect: false,
};

/** A Gemini that asks on `[[ask1]]`, echoes responses and says a plain reply otherwise. */
async function gemini(): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const last = JSON.stringify(JSON.parse(body || '{}').contents?.at(-1) ?? {});
    const asks = last.includes('[[ask1]]') && !last.includes('functionResponse');
    const part = asks
      ? { functionCall: { name: 'ask_user_question', args: { questions: [QUESTION] } } }
      : { text: last.includes('functionResponse') ? `ECHO ${last}` : 'PLAIN' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify(chunk([part], 'STOP'))}\r\n\r\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function place(): Promise<Place> {
  const found = new Place();
  mkdirSync(join(found.home, '.qwen'));
  writeFileSync(join(found.home, '.qwen/settings.json'), '{"security":{"auth":{"selectedType":"gemini"}}}');
  vi.stubEnv('HOME', found.home);
  vi.stubEnv('GEMINI_API_KEY', 'none');
  vi.stubEnv('GEMINI_MODEL', 'fake');
  vi.stubEnv('GOOGLE_GEMINI_BASE_URL', await gemini());
  return found;
}

describe.skipIf(REFERENCE === undefined)("with the reference's own child", { timeout: 30_000 }, () => {
  test('[DM-13, DM-3, DM-10] a question survives its death, is asked again, and the answer reaches the model', async () => {
    const here = await place();
    const bridge = here.bridge({ child: REFERENCE as string, childArgs: [] });
    const { sessionId, clientId } = await bridge.createSession({ sessionScope: 'thread' }, as());
    const before = await Listener.of(bridge, sessionId);
    await bridge.prompt(sessionId, ASK, undefined, as(clientId));
    await before.event('permission_request');
    // It asks before the call is on disk.
    const transcript = join(
      here.home,
      'projects',
      here.cwd.replace(/[^A-Za-z0-9]/g, '-'),
      'chats',
      `${sessionId}.jsonl`,
    );
    await vi.waitFor(() => expect(readFileSync(transcript, 'utf8')).toContain('functionCall'), 5_000);
    here.killChild();
    await before.over;
    expect(before.types().at(-1)).toBe('session_died');

    const loaded = (await bridge.load(sessionId, {}, as('me'))) as { clientId: string; lastEventId: number };
    expect(loaded).toMatchObject({ attached: false, hasActivePrompt: true });
    const listener = await Listener.of(bridge, sessionId, loaded);
    const asked = await listener.event('permission_request');
    const second = await bridge.load(sessionId, {}, as('you'));
    expect(second).toMatchObject({ attached: true, hasActivePrompt: true });
    expect(second['liveJournal']).toContainEqual(expect.objectContaining({ type: 'permission_request' }));
    expect(await bridge.continueSession(sessionId, as(loaded.clientId))).toMatchObject({ accepted: false });
    await bridge.prompt(sessionId, TEXT('next'), undefined, as(loaded.clientId));
    await bridge.vote(sessionId, asked.data.requestId, BLUE, as(loaded.clientId));
    await listener.event('pending_prompt_completed');
    expect(JSON.stringify(listener.events)).toContain('Blue');
    expect(await bridge.status(sessionId)).toMatchObject({ hasActivePrompt: false, activeWorkState: 'idle' });
  });

  test('[DM-13] a cancel, an attach to the idle session, a branch, a close and a shutdown go as with our own', async () => {
    const here = await place();
    const bridge = here.bridge({ child: REFERENCE as string, childArgs: [] });
    const { sessionId, clientId } = await bridge.createSession({ sessionScope: 'thread' }, as());
    const listener = await Listener.of(bridge, sessionId);
    await bridge.prompt(sessionId, ASK, undefined, as(clientId));
    await listener.event('permission_request');
    await bridge.cancel(sessionId, as(clientId));
    await listener.event('turn_complete');
    expect(await bridge.load(sessionId, {}, as(clientId))).toMatchObject({ attached: true, hasActivePrompt: false });
    const fork = await bridge.branch(sessionId, { name: 'fork' }, as(clientId));
    expect(fork).toMatchObject({ attached: false, hasActivePrompt: false, forkedFrom: { sessionId } });
    await bridge.close(sessionId, as(clientId));
    await listener.over;
    expect(listener.types().at(-1)).toBe('session_closed');
    expect(await bridge.load(sessionId, {}, as('me'))).toMatchObject({ attached: false });
    const began = performance.now();
    await bridge.shutdown();
    expect(performance.now() - began).toBeLessThan(4_500);
  });
});
