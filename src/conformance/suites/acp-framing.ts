import type { Context } from '../context.ts';
import { CUES } from '../model/script.ts';
import { envelopeFault } from '../schema.ts';
import type { Check } from '../suite.ts';
import { expect } from '../verdicts.ts';
import { ended, must, opened, refused, should } from './rows.ts';

const PAGE = 'protocol/v1/transports';

const request = (id: unknown, pad = '') =>
  JSON.stringify({ jsonrpc: '2.0', id, method: '_conformance/unknown', params: { pad } });

/** In ms. Long enough for an idle agent to read what it has; a busy one reads more at once, which is right too. */
const PAUSE = 40;

async function bytesMayBeSplit(context: Context) {
  const { peer } = await context.agent();
  const id = 'naïve 漢字 🔑';
  const bytes = Buffer.from(`${request(id)}\n`);
  const sent = peer.write(bytes.subarray(0, 1));
  let from = 1;
  // In the middle of each character that has several bytes.
  for (let at = 1; at < bytes.length; at += 1) {
    const isInside = ((bytes[at] ?? 0) & 0xc0) === 0x80 && ((bytes[at - 1] ?? 0) & 0xc0) === 0xc0;
    if (!isInside) continue;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    peer.write(bytes.subarray(from, at));
    from = at;
  }
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  peer.write(bytes.subarray(from));
  refused(await peer.reply(id, 'the answer to a request sent in pieces', { after: sent }), -32601);
}

async function chunksMayHoldMany(context: Context) {
  const { peer } = await context.agent();
  const sent = peer.write(`${request('one')}\n${request('two')}\n${request('three').slice(0, 20)}`);
  peer.write(`${request('three').slice(20)}\n`);
  for (const id of ['one', 'two', 'three']) await peer.reply(id, `the answer to ${id}`, { after: sent });
}

const lineEnding = (text: (id: string) => string) => async (context: Context) => {
  const { peer } = await context.agent();
  const sent = peer.write(text('first') + text('second'));
  for (const id of ['first', 'second']) await peer.reply(id, `the answer to ${id}`, { after: sent });
};

async function linesMayBeLong(context: Context) {
  const { peer } = await context.agent();
  const sent = peer.write(`${request('long', 'ü'.repeat(1_500_000))}\n`);
  refused(await peer.reply('long', 'the answer to a request of 3 MB', { after: sent }), -32601);
}

async function stdoutCarriesFrames(context: Context) {
  const { agent, peer, sessionId } = await opened(context);
  ended(await agent.say(sessionId, `${CUES.say}\nwith a second line`));
  await agent.hangUp();
  const wrong = peer.frames.find(
    (frame) => frame.dir === 'in' && frame.text !== '' && envelopeFault(frame) !== undefined,
  );
  expect(wrong === undefined, `a line on stdout is no message: ${wrong && envelopeFault(wrong)}`, wrong);
  expect(peer.rest === '', 'stdout ends without a newline', { text: peer.rest });
}

export const FRAMING: readonly Check[] = [
  must('ACP-FRAME-1', PAGE, 'A message may come in pieces of any size, even of a character.', bytesMayBeSplit),
  must('ACP-FRAME-2', PAGE, 'One piece may hold several messages and the beginning of the next.', chunksMayHoldMany),
  should(
    'ACP-FRAME-3',
    PAGE,
    'Lines may end with CR LF.',
    lineEnding((id) => `${request(id)}\r\n`),
  ),
  should(
    'ACP-FRAME-4',
    PAGE,
    'Blank lines are skipped.',
    lineEnding((id) => `\n\n${request(id)}\n\n`),
  ),
  must('ACP-FRAME-5', PAGE, 'A message may be of some megabytes.', linesMayBeLong),
  must('ACP-FRAME-6', PAGE, 'stdout carries one JSON-RPC 2.0 message a line and nothing else.', stdoutCarriesFrames, {
    needs: ['turn'],
  }),
];
