// Deterministic transcripts in the recorded format. The mix of records is that of a session that was really recorded:
// user, file-history snapshot, telemetry, assistant (thought, text, call), tool result, branch checkpoint.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { randomSource } from './text.mjs';

const VERSION = '0.24.4';
const TOOLS = ['run_shell_command', 'read_file', 'edit'];

export const QUESTION_CALL_ID = 'call_bench_auq_tail';
export const QUESTION_ARGS = {
  questions: [
    {
      question: 'Which database should the service use?',
      header: 'Database',
      options: [
        { label: 'SQLite', description: 'One file' },
        { label: 'Postgres', description: 'A server' },
      ],
      multiSelect: false,
    },
  ],
};

/** Where an agent looks for the transcript of session `sessionId` of workspace `cwd`. */
export function chatPath(qwenHome, cwd, sessionId) {
  return path.join(qwenHome, 'projects', cwd.replace(/[^a-zA-Z0-9]/g, '-'), 'chats', `${sessionId}.jsonl`);
}

/** Writes a transcript of exactly `count` records; with `question` its last call is an unanswered question. */
export function generate(file, { count, sessionId, cwd, question }) {
  const fd = fs.openSync(file, 'w');
  const writer = recordWriter(fd, { sessionId, cwd });
  const turns = turnWriter(writer, randomSource(1 + count), { sessionId, cwd });
  const target = count - (question ? 4 : 0);
  while (target - writer.written() >= 5) turns.turn(target - writer.written());
  while (writer.written() < target) turns.telemetry('');
  if (question) turns.openQuestion();
  writer.flush();
  fs.closeSync(fd);
}

function recordWriter(fd, { sessionId, cwd }) {
  let lines = [];
  let size = 0;
  let written = 0;
  let parentUuid = null;
  let time = Date.UTC(2026, 0, 1);
  const flush = () => {
    fs.writeSync(fd, lines.join(''));
    lines = [];
    size = 0;
  };
  const record = (milliseconds, before, after) => {
    const uuid = uuidOf(`${sessionId}${written}`);
    time += milliseconds;
    const head = { uuid, parentUuid, sessionId, timestamp: new Date(time).toISOString() };
    const line = `${JSON.stringify({ ...head, ...before, cwd, version: VERSION, ...after })}\n`;
    parentUuid = uuid;
    written++;
    lines.push(line);
    size += line.length;
    if (size > 1 << 22) flush();
    return uuid;
  };
  return { record, flush, written: () => written, now: () => new Date(time).toISOString() };
}

function uuidOf(text) {
  const hex = crypto.createHash('md5').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `a${hex.slice(17, 20)}`, hex.slice(20)].join('-');
}

function turnWriter(writer, random, { sessionId, cwd }) {
  const { integer, text } = random;
  let prompts = 0;
  let calls = 0;
  let checkpoint = null;
  const promptId = () => `${sessionId}########${prompts}`;
  const record = (before, after) => writer.record(integer(5, 900), before, after);
  const system = (subtype, systemPayload) =>
    record({ type: 'system', provenance: 'system' }, { subtype, systemPayload });

  function telemetry(responseText) {
    const counts = { input_token_count: integer(1000, 90_000), output_token_count: integer(10, 900) };
    system('ui_telemetry', {
      uiEvent: {
        'event.name': 'qwen-code.api_response',
        'event.timestamp': writer.now(),
        response_id: 'chatcmpl-bench',
        model: 'bench-model',
        status_code: 200,
        duration_ms: integer(200, 9000),
        ...counts,
        cached_content_token_count: 0,
        thoughts_token_count: 0,
        total_token_count: integer(1000, 90_000),
        ...(responseText ? { response_text: responseText } : {}),
        prompt_id: promptId(),
        auth_type: 'openai',
        ttft_ms: integer(50, 900),
      },
    });
  }

  function assistant(parts) {
    const usageMetadata = {
      promptTokenCount: integer(1000, 90_000),
      candidatesTokenCount: integer(10, 900),
      thoughtsTokenCount: integer(0, 300),
      totalTokenCount: integer(1000, 91_000),
      cachedContentTokenCount: 0,
    };
    const message = { role: 'model', parts };
    return record(
      { type: 'assistant', provenance: 'assistant_output' },
      { model: 'bench-model', message, usageMetadata },
    );
  }

  function user(prompt) {
    prompts++;
    record({ type: 'user', provenance: 'real_user' }, { message: { role: 'user', parts: [{ text: prompt }] } });
    const snapshot = { promptId: promptId(), timestamp: writer.now(), trackedFileBackups: {} };
    system('file_history_snapshot', { snapshots: [snapshot] });
  }

  function tool() {
    const name = TOOLS[integer(0, TOOLS.length - 1)];
    const id = `call_bench_${++calls}`;
    const output = text(random.logUniform(200, 20_000));
    const args = argumentsOf(name, random, cwd);
    const said = random.chance(0.4) ? text(integer(20, 200)) : '';
    const thought = random.chance(0.5) ? [{ text: text(integer(40, 600)), thought: true }] : [];
    telemetry(said);
    assistant([...thought, ...(said ? [{ text: said }] : []), { functionCall: { id, name, args } }]);
    system('ui_telemetry', { uiEvent: toolEvent(id, name, args, writer.now(), promptId(), integer(2, 3000)) });
    const shell = name === 'run_shell_command';
    const response = { output: shell ? shellReport(args.command, output) : output };
    const resultDisplay = shell ? shellDisplay(cwd, integer(100, 9999), output) : '';
    record(
      { type: 'tool_result', provenance: 'tool_result' },
      {
        message: { role: 'user', parts: [{ functionResponse: { id, name, response } }] },
        toolCallResult: { callId: id, status: 'success', executionStatus: 'success', resultDisplay },
      },
    );
  }

  function finish() {
    const answer = text(integer(80, 1500));
    const thought = random.chance(0.6) ? [{ text: text(integer(60, 900)), thought: true }] : [];
    telemetry(answer);
    const assistantRecordUuid = assistant([...thought, { text: answer }]);
    checkpoint = system('branch_checkpoint', { v: 1, startExclusiveRecordUuid: checkpoint, assistantRecordUuid });
  }

  /** One turn of at least 5 and at most `room` records: a prompt, up to six tools of 4 records, the answer. */
  function turn(room) {
    const tools = Math.min(Math.floor((room - 5) / 4), integer(0, 6));
    user(text(integer(20, 400)));
    for (let i = 0; i < tools; i++) tool();
    finish();
  }

  function openQuestion() {
    user('Set up storage.');
    telemetry('');
    assistant([{ functionCall: { id: QUESTION_CALL_ID, name: 'ask_user_question', args: QUESTION_ARGS } }]);
  }

  return { turn, telemetry, openQuestion };
}

function argumentsOf(name, { integer, text }, cwd) {
  const file_path = `${cwd}/src/file${integer(1, 400)}.ts`;
  if (name === 'read_file') return { file_path };
  if (name === 'edit') return { file_path, old_string: text(integer(40, 400)), new_string: text(integer(40, 400)) };
  const command = `npm test -- ${text(integer(10, 60)).replace(/\n/g, ' ')}`;
  return { command, description: 'run', is_background: false };
}

function toolEvent(callId, name, args, timestamp, promptId, duration) {
  return {
    'event.name': 'qwen-code.tool_call',
    'event.timestamp': timestamp,
    call_id: callId,
    function_name: name,
    function_args: args,
    duration_ms: duration,
    status: 'success',
    execution_status: 'success',
    success: true,
    prompt_id: promptId,
    tool_type: 'native',
  };
}

const shellReport = (command, output) =>
  `Command: ${command}\nDirectory: (root)\nOutput: ${output}\nError: (none)\nExit Code: 0`;

function shellDisplay(directory, pid, output) {
  return {
    type: 'shell_result',
    version: 1,
    directory,
    exitCode: 0,
    signal: null,
    pid,
    outcome: 'completed',
    outputFiles: [],
    output,
    text: output,
    error: null,
    notices: [],
    truncated: false,
  };
}
