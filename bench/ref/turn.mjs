// A prompt turn of the reference agent: an OpenAI-compatible model whose only tool is the question.
import { resultUpdate } from './updates.mjs';
import { ask, flush, send, updater } from './wire.mjs';

const RESTORE = 'qwen.daemon.restoreAskUserQuestion';
const OPTIONS = [
  { optionId: 'proceed_once', name: 'Submit', kind: 'allow_once' },
  { optionId: 'cancel', name: 'Cancel', kind: 'reject_once' },
];
const wrong = process.env.REF_WRONG;

function toMessages(history) {
  return history.flatMap(({ role, parts }) => {
    const results = parts.flatMap((part) => part.functionResponse ?? []);
    if (results.length) return results.map((result) => toolMessage(result.id, result.response.output));
    const content = parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join('');
    const calls = parts.flatMap((part) => part.functionCall ?? []).map(toToolCall);
    const tool_calls = calls.length ? { tool_calls: calls } : {};
    return [{ role: role === 'model' ? 'assistant' : 'user', content, ...tool_calls }];
  });
}

const toolMessage = (id, content) => ({ role: 'tool', tool_call_id: id, content });
const toToolCall = ({ id, name, args }) => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
});

async function callModel(messages, onDelta) {
  const body = JSON.stringify({ model: 'bench-model', stream: true, messages });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, { method: 'POST', headers, body });
  const decoder = new TextDecoder();
  let partial = '';
  for await (const bytes of response.body) {
    const events = (partial + decoder.decode(bytes, { stream: true })).split('\n\n');
    partial = events.pop();
    for (const event of events) {
      const delta = event.startsWith('data: {') ? JSON.parse(event.slice(6)).choices[0]?.delta : undefined;
      if (delta) onDelta(delta);
    }
    flush();
  }
}

async function askQuestion(sessionId, messages, call) {
  const toolCall = { toolCallId: call.id, status: 'pending', title: 'Ask user', kind: 'think', rawInput: call.args };
  const { answers } = await ask('session/request_permission', { sessionId, toolCall, options: OPTIONS });
  const text = call.args.questions.map((question, index) => `${question.header}: ${answers?.[index] ?? ''}`).join('\n');
  updater(sessionId)(resultUpdate(call.id, 'completed', text));
  flush();
  messages.push(toolMessage(call.id, wrong === 'answer' ? 'No answer.' : text));
}

/** Streams one reply; returns the call that it made, if any. */
async function streamReply(sessionId, messages) {
  const update = updater(sessionId);
  const chunk = (sessionUpdate, text) => update({ sessionUpdate, content: { type: 'text', text } });
  let call;
  let args = '';
  let deltas = 0;
  await callModel(messages, (delta) => {
    if (delta.content && !(wrong === 'delta' && deltas++ === 3)) chunk('agent_message_chunk', delta.content);
    if (delta.reasoning_content) chunk('agent_thought_chunk', delta.reasoning_content);
    for (const part of delta.tool_calls ?? []) {
      if (part.id) call = { id: part.id, name: part.function.name };
      args += part.function.arguments ?? '';
    }
  });
  if (!call) return undefined;
  call.args = JSON.parse(args);
  messages.push({ role: 'assistant', tool_calls: [toToolCall(call)] });
  update({ sessionUpdate: 'tool_call', toolCallId: call.id, status: 'pending', title: call.name, rawInput: call.args });
  return call;
}

/** Answers session/prompt for a session kept by new, load or resume. */
export async function promptTurn(session, { id, params }) {
  const { sessionId, prompt, _meta } = params;
  session.messages ??= toMessages(session.history);
  const { messages } = session;
  if (_meta?.[RESTORE] && session.questions.length) {
    for (const call of session.questions) await askQuestion(sessionId, messages, call);
  } else messages.push({ role: 'user', content: prompt.map((block) => block.text ?? '').join('\n') });
  for (let call = await streamReply(sessionId, messages); call; call = await streamReply(sessionId, messages)) {
    await askQuestion(sessionId, messages, call);
  }
  flush();
  send({ id, result: { stopReason: 'end_turn' } });
}
