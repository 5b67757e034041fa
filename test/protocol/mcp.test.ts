import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { bundleProgram, startHttpMcp, stdioServer } from '../support/mcp.ts';
import { Home, Peer } from '../support/peer.ts';
import { tempFolder } from '../support/temp.ts';

const SCRIPT = {
  rules: [
    { when: { response: true }, steps: [{ text: 'HEARD {{response}}' }] },
    { when: { text: 'echo' }, steps: [{ call: 'mcp__test__echo', args: { text: 'hello' } }] },
    { when: { text: 'where' }, steps: [{ call: 'mcp__test__where', args: {} }] },
    { when: { text: 'web' }, steps: [{ call: 'mcp__web__echo', args: { text: 'web' } }] },
    { steps: [{ text: 'nothing to do' }] },
  ],
};

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

test('[TL-2] a server given in session/new is called after the person allowed it, and ends with the child', async () => {
  const program = bundleProgram('mcp-stdio', tempFolder());
  const http = await startHttpMcp();
  onTestFinished(() => http.close());
  const cwd = tempFolder();
  const home = new Home();
  const peer = await Peer.start({ home, script: SCRIPT });
  const mcpServers = [
    stdioServer(program, 'test', { MODE: 'stubborn' }),
    stdioServer('/nowhere/server.mjs', 'broken'),
    { type: 'http' as const, name: 'web', url: http.url, headers: [] },
  ];
  const { sessionId } = await peer.request('session/new', { cwd, mcpServers });
  const allow = async (text: string) => {
    const turn = peer.prompt(sessionId, text);
    const asked = await peer.question();
    const once = asked.params.options.find(({ kind }) => kind === 'allow_once');
    asked.answer({ outcome: { outcome: 'selected', optionId: once?.optionId } });
    expect(asked.params.toolCall._meta).toMatchObject({ provenance: 'mcp' });
    expect(await turn).toMatchObject({ stopReason: 'end_turn' });
  };
  await allow('echo');
  await allow('web');
  await allow('where');
  // The server that is down is named to the person once, before the model speaks, and is no part of the conversation.
  const warning = 'The MCP server broken is not available: ';
  expect(peer.said().startsWith(warning)).toBe(true);
  expect(peer.said().split(warning)).toHaveLength(2);
  const file = readFileSync(home.file(sessionId, cwd), 'utf8');
  expect(file).not.toContain(warning);
  const records = file.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  const responses = records
    .flatMap(({ message }) => message?.parts ?? [])
    .flatMap((part) => part.functionResponse ?? []);
  const outputs = new Map(responses.map(({ name, response }) => [name, response.output]));
  expect(outputs.get('mcp__test__echo')).toBe('hello');
  expect(outputs.get('mcp__web__echo')).toBe('web');
  const { pid, client } = JSON.parse(outputs.get('mcp__test__where'));
  expect(client).toMatchObject({ name: 'qwen-acp', version });
  expect(lives(pid)).toBe(true);
  const started = Date.now();
  await peer.kill('SIGTERM');
  expect(Date.now() - started).toBeLessThan(2000);
  await vi.waitUntil(() => !lives(pid), { timeout: 1000, interval: 10 });
});
