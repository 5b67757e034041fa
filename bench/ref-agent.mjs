// The reference agent: the least that a correct agent can do, in front of an OpenAI-compatible model. It is the
// practical floor of the figures and shows that the checks pass for something that is not the product. With REF_WRONG it
// is wrong in one way (see agents.json), and the bench must notice.
import crypto from 'node:crypto';
import { loadSession, loadUpdates } from './ref/load.mjs';
import { promptTurn } from './ref/turn.mjs';
import { send, settle } from './ref/wire.mjs';

const sessions = new Map();
const CAPABILITIES = { loadSession: true, promptCapabilities: {}, sessionCapabilities: { resume: {} } };

async function handle(message) {
  const { id, method, params } = message;
  switch (method) {
    case undefined:
      return settle(message);
    case 'initialize':
      return send({ id, result: { protocolVersion: 1, agentCapabilities: CAPABILITIES, authMethods: [] } });
    case 'session/new': {
      const sessionId = crypto.randomUUID();
      sessions.set(sessionId, { history: [], questions: [] });
      return send({ id, result: { sessionId } });
    }
    case 'session/load':
      return loadSession(sessions, message, true);
    case 'session/resume':
      return loadSession(sessions, message, false);
    case 'qwen/session/loadUpdates':
      return loadUpdates(message);
    case 'session/prompt':
      return promptTurn(sessions.get(params.sessionId), message);
    default:
      if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
  }
}

function crash(error) {
  console.error(error);
  process.exit(1);
}

let partial = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text) => {
  const lines = (partial + text).split('\n');
  partial = lines.pop();
  for (const line of lines) if (line.trim()) handle(JSON.parse(line)).catch(crash);
});
process.stdin.on('end', () => process.exit(0));
