// The model of the bench: one server on loopback that speaks OpenAI's and Gemini's streaming and notes every request.
import http from 'node:http';
import * as gemini from './model-gemini.mjs';
import * as openai from './model-openai.mjs';
import { reply } from './model-script.mjs';

const DIALECTS = { openai, gemini };

/**
 * Starts the server: `{openaiUrl, geminiUrl, requests, keepBodies, close}`. A request is noted as
 * `{at, dialect, kind, result?, body?, ms}`: kind and result as in `reply`, the raw body only while `keepBodies.on`,
 * `ms` from the whole request read to the whole reply handed to the system.
 */
export async function startFakeModel() {
  const requests = [];
  const keepBodies = { on: false };
  const streams = new Map();
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString('utf8');
    if (request.method === 'GET')
      return sendJson(response, { object: 'list', data: [{ id: 'bench-model', object: 'model' }] });
    if (request.url.includes(':countTokens')) return sendJson(response, { totalTokens: 1 });
    const dialect = request.url.includes(':') ? 'gemini' : 'openai';
    const at = performance.now();
    const parsed = JSON.parse(body);
    const answer = reply(DIALECTS[dialect].readTurns(parsed));
    const note = { at, dialect, kind: answer.kind, result: answer.result, ms: Number.NaN };
    if (keepBodies.on) note.body = body;
    requests.push(note);
    response.on('finish', () => {
      note.ms = performance.now() - at;
    });
    const streaming = dialect === 'gemini' ? request.url.includes(':stream') : parsed.stream === true;
    if (!streaming) return sendJson(response, DIALECTS[dialect].writeWhole());
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    response.end(streamOf(streams, dialect, answer));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { openaiUrl: `${origin}/v1`, geminiUrl: origin, requests, keepBodies, close };
}

function sendJson(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** Long streams are built once: building 2,000 chunks is not the agent's time. */
function streamOf(streams, dialect, answer) {
  if (answer.call) return DIALECTS[dialect].writeStream(answer);
  const key = `${dialect} ${answer.thoughts.length} ${answer.texts.length} ${answer.texts[0]}`;
  if (!streams.has(key)) streams.set(key, Buffer.from(DIALECTS[dialect].writeStream(answer)));
  return streams.get(key);
}
