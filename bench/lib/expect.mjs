// The harness's own reading of a transcript: the ordered replay updates a correct agent must send, each reduced to a
// signature. An agent that is fast but drops, reorders or shortens anything fails.
import crypto from 'node:crypto';

const hash = (text) => crypto.createHash('sha1').update(text).digest('base64url').slice(0, 10);

/** What a replay of `records` must send: signatures in order, and the call ids that are left without a response. */
export function expectedReplay(records) {
  const signatures = [];
  const open = new Set();
  for (const record of records) {
    if (record.type === 'user') for (const part of record.message.parts) signatures.push(`user:${hash(part.text)}`);
    if (record.type === 'assistant') expectAssistant(record, signatures, open);
    if (record.type === 'tool_result') {
      for (const { functionResponse } of record.message.parts) {
        open.delete(functionResponse.id);
        signatures.push(`result:${functionResponse.id}:completed:${hash(functionResponse.response.output)}`);
      }
    }
  }
  return { signatures, open: [...open] };
}

function expectAssistant(record, signatures, open) {
  const calls = [];
  for (const part of record.message.parts) {
    if (part.functionCall) calls.push(part.functionCall);
    else signatures.push(`${part.thought ? 'thought' : 'text'}:${hash(part.text)}`);
  }
  if (record.usageMetadata) signatures.push(`usage:${record.usageMetadata.promptTokenCount}`);
  for (const call of calls) {
    signatures.push(`call:${call.id}:${hash(JSON.stringify(call.args))}`);
    open.add(call.id);
  }
}

/** The closing update of a call that is not asked again; its text is the agent's own. */
export const closedSignature = (callId) => `result:${callId}:failed`;

/** The signature of an update, or null for one that is no part of a replay. */
function signatureOf(update) {
  const text = update.content?.text ?? '';
  switch (update.sessionUpdate) {
    case 'user_message_chunk':
      return `user:${hash(text)}`;
    case 'agent_thought_chunk':
      return `thought:${hash(text)}`;
    case 'agent_message_chunk': {
      const usage = update._meta?.usage;
      return text === '' && usage ? `usage:${usage.inputTokens}` : `text:${hash(text)}`;
    }
    case 'tool_call':
      return `call:${update.toolCallId}:${hash(JSON.stringify(update.rawInput))}`;
    case 'tool_call_update': {
      if (update.status === 'failed') return closedSignature(update.toolCallId);
      const output = (update.content ?? []).map((item) => item.content?.text ?? '').join('');
      return `result:${update.toolCallId}:${update.status}:${hash(output)}`;
    }
    default:
      return null;
  }
}

export const signaturesOf = (updates) => updates.map(signatureOf).filter((signature) => signature !== null);

/** Null when equal, else the first difference in words. */
export function difference(got, want) {
  if (got.length !== want.length) return `replay updates: got ${got.length}, want ${want.length}`;
  const at = got.findIndex((signature, index) => signature !== want[index]);
  return at === -1 ? null : `update ${at}: got ${got[at]}, want ${want[at]}`;
}

/** As `difference`, for an answer that was allowed to leave out the oldest updates. */
export function suffixDifference(got, want) {
  return got.length ? difference(got, want.slice(-got.length)) : 'no updates';
}

/** Signatures of raw `session/update` lines, and the first thing wrong with their envelopes. */
export function readFrames(lines, sessionId) {
  const signatures = [];
  for (const line of lines) {
    let message;
    try {
      message = JSON.parse(line.toString('utf8'));
    } catch {
      return { signatures, error: 'unparsable frame' };
    }
    if (message.jsonrpc !== '2.0' || message.method !== 'session/update') return { signatures, error: 'bad envelope' };
    if (message.params?.sessionId !== sessionId) return { signatures, error: 'wrong sessionId in update' };
    const signature = signatureOf(message.params.update ?? {});
    if (signature !== null) signatures.push(signature);
  }
  return { signatures, error: null };
}

/** Every text, call and result of the conversation in order: what must reach the model with the next turn. */
export function historyItems(records) {
  const items = [];
  for (const record of records) {
    for (const part of record.message?.parts ?? []) {
      if (part.thought) continue;
      if (part.text) items.push({ text: part.text });
      else if (part.functionCall) items.push({ call: part.functionCall });
      else if (part.functionResponse) items.push({ text: part.functionResponse.response.output });
    }
  }
  return items;
}

/**
 * Looks for every item, in order, in the raw body of a model request. A call is known by its id in an OpenAI body and
 * by its arguments in a Gemini body, where ids are not the custom. Null, or what is missing.
 */
export function missingHistory(body, dialect, items) {
  let from = 0;
  for (const [index, item] of items.entries()) {
    const at = body.indexOf(needleOf(item, dialect), from);
    if (at === -1) return `history item ${index} of ${items.length} did not reach the model`;
    from = at;
  }
  return null;
}

function needleOf(item, dialect) {
  if (item.call && dialect === 'gemini') return JSON.stringify(item.call.args);
  return JSON.stringify(item.call ? item.call.id : item.text).slice(1, -1);
}
