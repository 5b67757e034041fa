// A transcript record as session updates, in the recorded shapes.
const TOOLS = {
  run_shell_command: ['Shell', 'execute'],
  read_file: ['ReadFile', 'read'],
  edit: ['Edit', 'edit'],
  ask_user_question: ['AskUserQuestion', 'think'],
};
const textContent = (text) => ({ type: 'text', text });

export function* updatesOf(record) {
  const timestamp = Date.parse(record.timestamp);
  const source = { sourceRecordIds: [record.uuid] };
  const segment = (index) => ({ timestamp, qwenTranscript: { ...source, segmentId: `${record.uuid}:${index}` } });
  const parts = record.message?.parts ?? [];
  if (record.type === 'user') {
    for (const [index, { text }] of parts.entries()) {
      yield { sessionUpdate: 'user_message_chunk', content: textContent(text), _meta: segment(index) };
    }
  }
  if (record.type === 'assistant') {
    for (const [index, part] of parts.entries()) {
      if (part.functionCall) continue;
      const sessionUpdate = part.thought ? 'agent_thought_chunk' : 'agent_message_chunk';
      yield { sessionUpdate, content: textContent(part.text), _meta: segment(index) };
    }
    yield usageUpdate(record.usageMetadata, { timestamp, qwenTranscript: source });
    for (const { functionCall } of parts) {
      if (functionCall) yield callUpdate(functionCall, { timestamp, qwenTranscript: source });
    }
  }
  if (record.type === 'tool_result') {
    for (const { functionResponse } of parts) {
      yield {
        ...resultUpdate(functionResponse.id, 'completed', functionResponse.response.output),
        _meta: { toolName: functionResponse.name, provenance: 'builtin', timestamp, qwenTranscript: source },
        rawOutput: record.toolCallResult?.resultDisplay,
      };
    }
  }
}

function usageUpdate(counts, meta) {
  const usage = {
    inputTokens: counts.promptTokenCount,
    outputTokens: counts.candidatesTokenCount,
    totalTokens: counts.totalTokenCount,
    thoughtTokens: counts.thoughtsTokenCount,
    cachedReadTokens: counts.cachedContentTokenCount,
  };
  return { sessionUpdate: 'agent_message_chunk', content: textContent(''), _meta: { usage, ...meta } };
}

function callUpdate({ id, name, args }, meta) {
  const [title, kind] = TOOLS[name] ?? [name, 'other'];
  return {
    sessionUpdate: 'tool_call',
    toolCallId: id,
    status: 'in_progress',
    title,
    content: [],
    locations: [],
    kind,
    rawInput: args,
    _meta: { toolName: name, provenance: 'builtin', ...meta },
  };
}

export function resultUpdate(toolCallId, status, text) {
  const content = [{ type: 'content', content: textContent(text) }];
  return { sessionUpdate: 'tool_call_update', toolCallId, status, content };
}
