import type { ContentBlock, PlanEntryStatus, SessionUpdate, ToolCallContent } from '@agentclientprotocol/sdk';
import type { Part } from '@google/genai';
import {
  CANCELLED_TURN,
  CONTEXT_COMPRESSION,
  DISCRETE_MESSAGE,
  DURATION_MS,
  PHASE,
  PROMPT_ID,
  PROVENANCE,
  RECORD_ID,
  SOURCE,
  TIMESTAMP,
  TODO_PLAN,
  TOOL_NAME,
  TRANSCRIPT,
  USAGE,
} from '../meta/keys.ts';
import type { CommandOutput, EventSource, SessionEvent, UsageMetadata } from '../session/ports.ts';
import { isRecord } from '../is-record.ts';
import { preparingCard, toolCard } from './tool-cards.ts';

/** An event whose strings have been read. */
export type ReadEvent = Exclude<SessionEvent, { kind: 'raw_result' }>;

type Meta = Record<string, unknown>;
type Of<Kind extends ReadEvent['kind']> = Extract<ReadEvent, { kind: Kind }>;

/** The tool whose results are the plan; its calls have no card. */
const TODO_WRITE = 'todo_write';

/**
 * The `session/update` of an event, in the recorded shape and key order; undefined for what a client is not shown.
 * `cwd` is the session's, in titles paths are relative to it. Pure.
 */
export function sessionUpdate(event: ReadEvent, cwd: string): SessionUpdate | undefined {
  switch (event.kind) {
    case 'user_part':
      return {
        sessionUpdate: 'user_message_chunk',
        content: contentOf(event.part),
        ...metaOf(sourceMeta(event.source)),
      };
    case 'text':
      return {
        sessionUpdate: event.thought ? 'agent_thought_chunk' : 'agent_message_chunk',
        content: { type: 'text', text: event.command ? hardBreaks(event.text) : event.text },
        ...metaOf(event.command ? commandMeta(event.command, event.source) : sourceMeta(event.source)),
      };
    case 'usage':
      return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '' }, _meta: usageMeta(event) };
    case 'cancelled':
      return {
        sessionUpdate: 'agent_message_chunk',
        content: { type: 'text', text: '' },
        _meta: { [DISCRETE_MESSAGE]: true, [CANCELLED_TURN]: event.turn, ...sourceMeta(event.source) },
      };
    case 'context':
      return { sessionUpdate: 'usage_update', used: event.used, size: event.size };
    case 'title':
      return { sessionUpdate: 'session_info_update', title: event.title };
    case 'call':
      if (event.name === TODO_WRITE) return undefined;
      return event.phase === 'running' ? runningUpdate(event, cwd) : callUpdate(event, cwd);
    case 'progress':
      return event.name === TODO_WRITE ? undefined : progressUpdate(event);
    case 'result':
      return event.name === TODO_WRITE ? planUpdate(event) : resultUpdate(event);
  }
}

/** A replayed update as it stands in a response: with its record and its time. */
export function bulkUpdate(update: SessionUpdate, source: EventSource): SessionUpdate & { timestamp: number } {
  return { ...update, _meta: { ...update._meta, [RECORD_ID]: source.recordId }, [TIMESTAMP]: source.timestamp };
}

function callUpdate(event: Of<'call'>, cwd: string): SessionUpdate {
  const preparing = event.phase === 'preparing';
  const { title, kind, locations } = preparing ? preparingCard(event.name) : toolCard(event.name, event.args, cwd);
  return {
    sessionUpdate: 'tool_call',
    toolCallId: event.callId,
    status: preparing ? 'pending' : 'in_progress',
    title,
    content: [],
    locations,
    kind,
    rawInput: preparing ? {} : event.args,
    _meta: {
      ...toolMeta(event.name),
      ...(preparing ? { [PHASE]: 'preparing' } : {}),
      ...sourceMeta(event.source),
    },
  };
}

/** The call begins: its card gets what was not known while the model wrote it. */
function runningUpdate({ callId, name, args }: Of<'call'>, cwd: string): SessionUpdate {
  const { title, kind, locations } = toolCard(name, args, cwd);
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: callId,
    status: 'in_progress',
    title,
    locations,
    kind,
    rawInput: args,
    _meta: toolMeta(name),
  };
}

function progressUpdate({ callId, name, shown }: Of<'progress'>): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: callId,
    status: 'in_progress',
    content: ['text' in shown ? textContent(shown.text) : { type: 'terminal', terminalId: shown.terminalId }],
    _meta: toolMeta(name),
  };
}

const textContent = (text: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text } });

/** A command's terminal stays on its card; it shows all of the output. */
function contentOfResult({ terminalId, display, text, path }: Of<'result'>): ToolCallContent {
  if (terminalId !== undefined) return { type: 'terminal', terminalId };
  return diffOf(display, path) ?? textContent(text);
}

function resultUpdate(event: Of<'result'>): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: event.callId,
    status: event.ok ? 'completed' : 'failed',
    content: [contentOfResult(event)],
    _meta: { ...toolMeta(event.name), ...sourceMeta(event.source) },
    ...(event.display === undefined ? {} : { rawOutput: event.display }),
  };
}

/** Where a tool comes from, as a client groups it. */
export function toolMeta(name: string): Meta {
  const server = /^mcp__(.+?)__/.exec(name)?.[1];
  if (server === undefined) return { [TOOL_NAME]: name, [PROVENANCE]: 'builtin' };
  return { [TOOL_NAME]: name, [PROVENANCE]: 'mcp', serverId: server };
}

/** An edit's display says where the file is (older ones only its name), and its text before and after. */
function diffOf(display: unknown, path: string | undefined): ToolCallContent | undefined {
  if (!isRecord(display)) return undefined;
  const { fileName, filePath, originalContent, newContent } = display;
  if (typeof fileName !== 'string' || typeof newContent !== 'string') return undefined;
  return {
    type: 'diff',
    path: path ?? (typeof filePath === 'string' ? filePath : fileName),
    oldText: typeof originalContent === 'string' ? originalContent : null,
    newText: newContent,
  };
}

const STATUSES: readonly unknown[] = ['pending', 'in_progress', 'completed'] satisfies PlanEntryStatus[];

function planUpdate({ callId, display, source }: Of<'result'>): SessionUpdate | undefined {
  if (!isRecord(display) || !Array.isArray(display['todos'])) return undefined;
  const entries = display['todos'].filter(isRecord).map((todo) => ({
    content: typeof todo['content'] === 'string' ? todo['content'] : '',
    priority: 'medium' as const,
    status: (STATUSES.includes(todo['status']) ? todo['status'] : 'pending') as PlanEntryStatus,
    ...(todo['id'] === undefined ? {} : { _meta: { qwenTodo: { id: todo['id'] } } }),
  }));
  const { planId } = display;
  const plan = typeof planId === 'string' ? { [TODO_PLAN]: { id: planId } } : undefined;
  const meta = sourceMeta(source);
  if (meta === undefined) return { sessionUpdate: 'plan', entries, ...metaOf(plan) };
  const transcript = { ...(meta[TRANSCRIPT] as Meta), planToolCallId: callId };
  return { sessionUpdate: 'plan', entries, _meta: { ...plan, ...meta, [TRANSCRIPT]: transcript } };
}

function contentOf({ text, inlineData }: Part): ContentBlock {
  if (inlineData === undefined) return { type: 'text', text: text ?? '' };
  const { data = '', mimeType = 'application/octet-stream' } = inlineData;
  if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType };
  return { type: 'text', text: `[${mimeType}]` };
}

/** A line break of a command's output is one for who reads it as Markdown, too. */
const hardBreaks = (text: string): string => text.replaceAll('\n', '  \n');

const commandMeta = ({ contextCompression }: CommandOutput, source: EventSource | undefined): Meta => ({
  [SOURCE]: 'slash_command',
  ...(contextCompression && { [CONTEXT_COMPRESSION]: contextCompression }),
  ...sourceMeta(source),
});

function usageMeta({ usage, durationMs, source }: Of<'usage'>): Meta {
  return {
    [USAGE]: tokensOf(usage),
    ...(durationMs === undefined ? {} : { [DURATION_MS]: durationMs }),
    ...sourceMeta(source),
  };
}

function tokensOf(usage: UsageMetadata): Meta {
  return {
    inputTokens: usage.promptTokenCount,
    outputTokens: usage.candidatesTokenCount,
    totalTokens: usage.totalTokenCount,
    thoughtTokens: usage.thoughtsTokenCount,
    cachedReadTokens: usage.cachedContentTokenCount,
  };
}

function sourceMeta(source: EventSource | undefined): Meta | undefined {
  if (source === undefined) return undefined;
  const { recordId, timestamp, segment, promptId } = source;
  return {
    ...(promptId === undefined ? {} : { [PROMPT_ID]: promptId }),
    [TIMESTAMP]: timestamp,
    [TRANSCRIPT]: {
      sourceRecordIds: [recordId],
      ...(segment === undefined ? {} : { segmentId: `${recordId}:${segment}` }),
    },
  };
}

function metaOf(meta: Meta | undefined): { _meta?: Meta } {
  return meta === undefined ? {} : { _meta: meta };
}
