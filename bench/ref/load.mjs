// session/load, session/resume and loadUpdates of the reference agent, with the faults of its broken variants.
import fs from 'node:fs';
import path from 'node:path';
import { parsedLines } from '../lib/lines.mjs';
import { resultUpdate, updatesOf } from './updates.mjs';
import { flush, flushFull, send, updater } from './wire.mjs';

const restore = process.argv.includes('--restore-ask-user-question');
const wrong = process.env.REF_WRONG;

function transcriptFile(cwd, sessionId) {
  return path.join(
    process.env.HOME,
    '.qwen',
    'projects',
    cwd.replace(/[^a-zA-Z0-9]/g, '-'),
    'chats',
    `${sessionId}.jsonl`,
  );
}

/** What a session needs of its records: `{history, open, questions}`, added to one record at a time. */
function newState() {
  return { history: [], open: new Map(), questions: [] };
}

function addRecord(state, { message }) {
  if (!message) return;
  state.history.push(message);
  for (const { functionCall, functionResponse } of message.parts) {
    if (functionCall) state.open.set(functionCall.id, functionCall);
    if (functionResponse) state.open.delete(functionResponse.id);
  }
}

/** The calls that will be asked again: the trailing ones, when all are questions and the switch is on. */
function questionsOf({ history }) {
  const calls = (history.at(-1)?.parts ?? []).flatMap((part) => part.functionCall ?? []);
  return restore && calls.every((call) => call.name === 'ask_user_question') ? calls : [];
}

const closing = (state) => [...state.open.keys()].map((id) => resultUpdate(id, 'failed', 'No result was recorded.'));

/** The update that goes out for the n-th of a replay; the broken variants differ here. */
function spoil(update, index) {
  if (wrong === 'drop' && index === 6) return [];
  if (wrong === 'twice' && index === 6) return [update, update];
  if (wrong === 'truncate' && update.sessionUpdate === 'tool_call_update') {
    return [resultUpdate(update.toolCallId, update.status, update.content[0].content.text.slice(0, 150))];
  }
  return [update];
}

function reorder(emit) {
  let index = 0;
  let held;
  return (update) => {
    const at = index++;
    if (wrong === 'order' && at === 2) held = update;
    else if (wrong === 'order' && at === 3) [update, held].forEach(emit);
    else spoil(update, at).forEach(emit);
  };
}

async function replayStreamed(file, sessionId) {
  const state = newState();
  const emit = reorder(updater(sessionId));
  for (const record of parsedLines(file)) {
    addRecord(state, record);
    for (const update of updatesOf(record)) emit(update);
    await flushFull();
  }
  state.questions = questionsOf(state);
  if (!state.questions.length) closing(state).forEach(emit);
  return state;
}

/** A replay in one answer, of the last `page` records when given, cut back to the first turn that begins there. */
function replayWhole(file, page = Number.POSITIVE_INFINITY) {
  const state = newState();
  let records = [];
  for (const record of parsedLines(file)) {
    addRecord(state, record);
    records.push(record);
    if (records.length > page) records.shift();
  }
  if (page < state.history.length) records = records.slice(records.findIndex((record) => record.type === 'user'));
  state.questions = questionsOf(state);
  const updates = [];
  const emit = reorder((update) => updates.push(update));
  for (const record of records) for (const update of updatesOf(record)) emit(update);
  if (!state.questions.length) closing(state).forEach(emit);
  return { state, updates };
}

function readOnly(file) {
  const state = newState();
  for (const record of wrong === 'noread' ? [] : parsedLines(file)) addRecord(state, record);
  state.questions = questionsOf(state);
  return state;
}

/** Answers session/load (`replay`) or session/resume, and keeps the session's state in `sessions`. */
export async function loadSession(sessions, { id, params }, replay) {
  const { sessionId, cwd, _meta } = params;
  const file = transcriptFile(cwd, sessionId);
  if (!fs.existsSync(file)) return send({ id, error: { code: -32002, message: 'Resource not found' } });
  const bulk = replay && _meta?.['qwen.session.loadReplayMode'] === 'bulk';
  const meta = {};
  let state;
  if (wrong === 'late') send({ id, result: { _meta: {} } });
  if (wrong === 'write') fs.appendFileSync(file, '{"type":"system"}\n');
  if (bulk) {
    const page = _meta['qwen.session.loadReplayPageSize'];
    const whole = replayWhole(file, page);
    state = whole.state;
    meta['qwen.session.loadReplay'] = { v: 1, updates: whole.updates, ...(page ? { hasMore: true } : {}) };
  } else state = replay ? await replayStreamed(file, sessionId) : readOnly(file);
  if (state.questions.length && wrong !== 'hint') meta['qwen.daemon.restoreAskUserQuestion'] = true;
  sessions.set(sessionId, state);
  if (wrong === 'late') return flush();
  return send({ id, result: { modes: { currentModeId: 'default', availableModes: [] }, _meta: meta } });
}

export function loadUpdates({ id, params }) {
  const { state, updates } = replayWhole(transcriptFile(params.cwd, params.sessionId));
  if (state.questions.length) updates.push(...closing(state));
  send({ id, result: { updates } });
}
