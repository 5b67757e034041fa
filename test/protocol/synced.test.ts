import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { cards } from '../support/evidence.ts';
import { type Asked, DECLINE, Home, Peer, submit } from '../support/peer.ts';
import { tempFolder } from '../support/temp.ts';

/** A disk whose syncs take a while, and which says what was synced. */
const SLOW_DISK = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { fdatasync } = fs;
fs.fdatasync = (fd, done) =>
  fdatasync(fd, (error) =>
    setTimeout(() => {
      fs.appendFileSync(process.env.SYNC_LOG, \`\${fs.fstatSync(fd).size}\\n\`);
      done(error);
    }, 100),
  );
syncBuiltinESMExports();
`;

/** Decisions about a question, and which sign of them the client waits for. */
const DECISIONS: readonly {
  name: string;
  decide: (peer: Peer, asked: Asked) => unknown;
  shown: string;
}[] = [
  { name: 'an answer', decide: (_, asked) => asked.answer(submit({ 0: 'Red' })), shown: 'tool_call_update completed' },
  { name: 'a decline', decide: (_, asked) => asked.answer(DECLINE), shown: 'tool_call_update failed' },
  { name: 'an error', decide: (_, asked) => asked.refuse(-32000, 'no'), shown: 'tool_call_update failed' },
  {
    name: 'a cancel',
    decide: (peer, { params: { sessionId } }) => peer.notify('session/cancel', { sessionId }),
    shown: 'tool_call_update failed',
  },
];

test('[TR-5, ACP-7, K013] answers, declines and cancels have reached the disk before anybody is told', async () => {
  const folder = tempFolder({ 'slow-disk.mjs': SLOW_DISK });
  const log = join(folder, 'synced');
  const synced = () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n').map(Number) : []);
  const home = new Home();
  const preload = pathToFileURL(join(folder, 'slow-disk.mjs')).href;
  const env = { NODE_OPTIONS: `--import ${preload}`, SYNC_LOG: log };
  const peer = await Peer.start({ home, restore: true, env });
  for (const { name, decide, shown } of DECISIONS) {
    const id = await peer.newSession();
    const { turn, asked } = await peer.askIn(id);
    const asking = home.bytes(id).length;
    const before = synced().length;
    decide(peer, asked);
    await peer.until(() => cards(peer, id).at(-1) === shown);
    const [first, ...others] = synced().slice(before);
    expect(first, name).toBeGreaterThan(asking);
    expect(others, name).toEqual([]);
    await turn;
    if (name === 'a cancel') expect(synced().at(-1), name).toBe(home.bytes(id).length);
  }
});
