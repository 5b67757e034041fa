/** The design's requirements as data. A test cites the ids that it proves; the PF ids are cited by the bench. */
export type WorkPart = 'child' | 'daemon' | 'agent';

export interface Requirement {
  readonly id: string;
  readonly part: WorkPart;
  readonly sentence: string;
}

/** Parts whose every id must be cited by a test. */
export const FINISHED: readonly WorkPart[] = ['child', 'daemon', 'agent'];

export const REQUIREMENTS: readonly Requirement[] = [
  {
    id: 'CLI-1',
    part: 'child',
    sentence:
      "One executable, `qwen-acp` (`dist/cli.js`), built on yargs, taking the reference's arguments: `qwen-acp --acp [--restore-ask-user-question]` is the stdio child, `qwen-acp serve [--restore-ask-user-question] [...]` the daemon. `--experimental-acp` is an alias of `--acp`.",
  },
  {
    id: 'CLI-2',
    part: 'child',
    sentence:
      '`--restore-ask-user-question` defaults to false in both. On the child it counts only together with `--acp`; given without it, it is ignored with one line on stderr, then the help. No settings key, no environment variable, no capability tag.',
  },
  {
    id: 'CLI-3',
    part: 'child',
    sentence:
      "`acpChildExtraArgs({experimentalLsp, restoreAskUserQuestion})` gives the spawned child's extra arguments in that order, `undefined` when there are none. The child takes what the reference's daemon passes (`--acp`, `--experimental-lsp`, `--restore-ask-user-question`; the first without the second two is the default); any other unknown argument is an error with usage and exit code 1. The short start path (see ARCHITECTURE.md) and full yargs agree on every spelling (`--flag`, `--flag=false`, `--no-flag`, repeats), tested.",
  },
  {
    id: 'CLI-4',
    part: 'child',
    sentence:
      'stdout of the child carries protocol frames and nothing else, whatever a dependency prints; logs go to stderr, one line each, level by `--log-level` / `QWEN_ACP_LOG`, `warn` by default (damage in a file is a warning). `--help`, `--version`, unknown command and bad value behave as users of yargs programs expect.',
  },
  { id: 'CLI-5', part: 'child', sentence: '`qwen-acp` without arguments prints help to stdout, exit 0.' },
  {
    id: 'CLI-6',
    part: 'child',
    sentence:
      "`--auth-type gemini|vertex-ai|openai|anthropic|scripted` and `--model` choose the provider; without them `security.auth.selectedType` in the reference's settings (`settings.json` of the workspace, then of the user), then the environment (`OPENAI_API_KEY`, `GEMINI_API_KEY`, `ANTHROPIC_API_KEY`, in this order). A provider that is named but lacks its key is an error that says which variable to set (`session/new` answers auth-required, -32000), never `scripted`. `scripted` is the default only where nothing at all is configured, and every session of it says so. `--script FILE` gives it its script.",
  },
  {
    id: 'ACP-1',
    part: 'child',
    sentence:
      '`initialize` negotiates the protocol version, names the agent (`agentInfo`), lists auth methods (none of type terminal unless the client can), and advertises exactly what works: `loadSession`, `sessionCapabilities` (`list`, `resume`, `close`, `delete`), prompt and MCP capabilities. A method before it is served as for a version-1 client without capabilities.',
  },
  {
    id: 'ACP-2',
    part: 'child',
    sentence:
      '`session/new`, `load`, `resume`, `list`, `close`, `delete`, `prompt`, `cancel`, `set_mode`, `set_config_option`, `authenticate` as the stable schema has them; missing `mcpServers` counts as none, a relative `cwd` is -32602. Unknown methods: -32601. Unknown notifications are ignored.',
  },
  {
    id: 'ACP-3',
    part: 'child',
    sentence:
      "`session/load` sends the whole history as `session/update`s, in order, all of them (and `available_commands_update`) before its response, and nothing of the replay after it. `session/resume` sends no history. `session/new` answers before any update names the new session. In live turns and loads `tool_call` comes before its `tool_call_update`, under the ids that were used live; after a resume the permission request's `toolCall` introduces the call (title, kind, rawInput, readable content).",
  },
  {
    id: 'ACP-4',
    part: 'child',
    sentence:
      'Params are validated against the protocol\'s published schema: wrong ones get -32602 naming the path, never a crash, never an internal error. Parse error -32700, invalid request -32600. Unknown session: -32002 with `data: {uri: "session:<id>", sessionId}` for every method but `loadUpdates` and `delete`. An unexpected exception is -32603 with no text of the exception on the wire and the stack on stderr.',
  },
  {
    id: 'ACP-5',
    part: 'child',
    sentence:
      'Framing: one JSON message a line, UTF-8 split anywhere, CRLF and blank lines tolerated, BOM tolerated on the first line, a line over the inbound limit (default 64 MiB) refused with -32600 without killing the connection. No outbound line is over 32 MiB. A repeated id, ids `1` and `"1"`, `id: null`, batches and junk each get a defined answer (see ARCHITECTURE.md).',
  },
  {
    id: 'ACP-6',
    part: 'child',
    sentence:
      'The ids of the requests that the child sends are unique across processes, so a re-issued `session/request_permission` never bears an id that the client has seen for that session before.',
  },
  {
    id: 'ACP-7',
    part: 'child',
    sentence:
      '`session/cancel` ends the running turn with `stopReason: cancelled`, after all its updates and without waiting for a client that never answers a permission request (the request is withdrawn with `$/cancel_request`; a late answer is ignored). Before the prompt is answered the cancel is on disk (a `system` record `turn_result`, `state: cancelled`, fsynced). `$/cancel_request` works in both directions. Text streamed before a cancel stays in the history.',
  },
  {
    id: 'ACP-8',
    part: 'child',
    sentence:
      'A second ordinary `session/prompt` while a turn runs ends the running one (`cancelled`) and then starts, as in the reference; turns never interleave. For restore prompts see RS-9.',
  },
  {
    id: 'ACP-9',
    part: 'child',
    sentence:
      'EOF on stdin, SIGTERM, SIGINT and SIGHUP end the child cleanly within 2 s: running turns stop, transcripts are flushed, exit code 0 (130 for SIGINT). A client that vanishes (EPIPE) ends it too. No orphan processes.',
  },
  {
    id: 'ACP-10',
    part: 'child',
    sentence:
      '`qwen/session/loadUpdates {sessionId, cwd}` answers `{updates, startTime, lastUpdated}` (shape as recorded), read-only: it starts no session, writes nothing and never re-asks. An unknown session gives `{updates: []}`. What a running turn has in flight is not finalized.',
  },
  {
    id: 'ACP-11',
    part: 'child',
    sentence:
      '`session/load` with `_meta["qwen.session.loadReplayMode"] = "bulk"` returns the replay in the response\'s `_meta["qwen.session.loadReplay"]` (version 1 envelope and paging keys as recorded) instead of as notifications. It is cut to the newest whole records under 32 MiB and 10,000 updates, saying so (`hasMore`, `anchorRecordId`, `partial` where it applies).',
  },
  {
    id: 'ACP-12',
    part: 'child',
    sentence:
      "Drop-in under the reference's daemon: the handshake keys of FACTS.md section 7 (the guard acknowledgement, liveness and its ping) are given when, and only when, the client's `initialize` or the environment asks for them; `qwen/control/session/continue`, `/close`, `/branch`, `craft/cancelPendingPrompt` (`{cancelled: boolean}`, acts as `session/cancel`) and the status methods it calls are answered as recorded. Each `qwen/...` method is also served under its protocol-conformant name `_qwen/...`; what the child itself sends under an unprefixed name goes only to a daemon (clientInfo `qwen-serve-bridge` or ours), with a deadline.",
  },
  {
    id: 'ACP-13',
    part: 'child',
    sentence:
      'One session never blocks another: while one waits for a person, every other method answers at once. A client that never answers a request costs nothing but that wait.',
  },
  {
    id: 'ACP-14',
    part: 'child',
    sentence:
      'A `session/prompt` without any content is refused with -32602 and nothing is written, unless it bears the restore key with the switch on, or `qwen.daemon.continueLastTurn: true`.',
  },
  {
    id: 'TR-1',
    part: 'child',
    sentence:
      "A session is a JSON Lines file in the reference's place and format: `<QWEN_RUNTIME_DIR, else QWEN_HOME, else ~/.qwen>/projects/<cwd with every character outside A-Z a-z 0-9 as ->/chats/<sessionId>.jsonl`; records `user`, `assistant`, `tool_result`, `system` linked by `uuid`/`parentUuid`, messages as Gemini `Content`. The reference loads what we write, and we load what it writes, system subtypes we do not know included (kept, never rewritten).",
  },
  {
    id: 'TR-2',
    part: 'child',
    sentence:
      'The conversation is the chain from the last record up through `parentUuid`; abandoned branches are left out, except that a `tool_result` whose call is on the chain belongs to it. A missing parent is bridged to the nearest earlier record and reported as a gap, never a failure. `rewind` and `chat_compression` records are honoured.',
  },
  {
    id: 'TR-3',
    part: 'child',
    sentence: "Loading never writes. The file grows only by what really happened (and by BT-5's closing responses).",
  },
  {
    id: 'TR-4',
    part: 'child',
    sentence:
      'A torn last line (any prefix of a record, without newline) is ignored on load and never glued to the next record; a whole record that only lacks its newline counts. A corrupt line in the middle is skipped and counted in one warning. An empty file, a file of junk, NUL bytes, CRLF, a BOM, duplicate uuids and parent cycles all load or fail with a clear error; none hangs or crashes.',
  },
  {
    id: 'TR-5',
    part: 'child',
    sentence:
      'An append is one write of whole lines to a file opened for append, in order. A user message, a function call and a function response are written (the write has returned) before the next thing that depends on them happens: the question leaves the process, the model is asked to go on. Answers, cancels and declines are fsynced.',
  },
  {
    id: 'TR-6',
    part: 'child',
    sentence:
      "Session ids are checked before they become a path. Files are 0600, folders 0700. A symlink, a directory or a FIFO in the file's place is refused at once with a clear error (-32602). Session ids are UUIDs, compared without case, stored in lower case.",
  },
  {
    id: 'TR-7',
    part: 'child',
    sentence:
      "Two processes never interleave: an append is compare-and-append under a short lock (owner: pid, start time, host; a dead owner's lock is taken over). If the tail is no longer the one this process knows (or the file was cut or is gone), nothing is written and the request fails with -32021 (`session_transcript_changed`), the question is withdrawn, and the next load reads anew. Loading and waiting hold no lock.",
  },
  {
    id: 'TR-8',
    part: 'child',
    sentence:
      'A load reads the file in a stream, at most twice, the first time over raw links only; listing sessions reads the head and tail of each file.',
  },
  {
    id: 'TR-9',
    part: 'child',
    sentence:
      'Whatever the history holds (an unpaired call in the middle, a response without a call, sibling branches of parallel tool results, call ids that a provider uses again in a later turn), what is sent to a model pairs every call with exactly one response, adjacent. Only the trailing call is ever restored.',
  },
  {
    id: 'TR-10',
    part: 'child',
    sentence:
      "Each turn that begins with a user's prompt, and a continue, writes a `file_history_snapshot` record (the reference's rewind counts them); a restore writes none.",
  },
  {
    id: 'EL-1',
    part: 'child',
    sentence:
      '`findRestorableAskUserQuestion(last)`: the last entry of the API history is a model turn; every function call with an id in it is `ask_user_question`, and there is at least one (calls without an id do not count either way); all their arguments parse. Around it, for a load or resume: the switch is on; the request is not suppressed; no prompt is in flight on the live session. Else the batch is repaired as before.',
  },
  {
    id: 'EL-2',
    part: 'child',
    sentence:
      "`parseAskUserQuestionParams(args)`: 1 to 4 questions; each with a non-blank `question` and `header`; 2 to 4 options with non-blank `label` and `description`; `multiSelect` absent or boolean. Extra properties are ignored. Anything else fails closed. The tool's own validation is this function.",
  },
  {
    id: 'EL-3',
    part: 'child',
    sentence:
      "Eligibility is a pure function of the last history entry: it reads that entry alone, constructs no tool, and works on the entry itself, not on a copy. `lastHistoryContentFromRecords(records)` gives it from a conversation's records: the last that is not `system` and has a message. A tail reader finds the same entry without reading the file from its start, by the rules of TR-2 (a rewound, branched or compressed tail is a test row; after a compression the API history is the compressed one and what follows it, so a question that it left out is gone). `restorableAskUserQuestionCallIds(last)` gives the ids.",
  },
  {
    id: 'EL-4',
    part: 'child',
    sentence:
      'Why not is a value: `switched_off`, `suppressed`, `prompt_in_flight`, `no_trailing_model_turn`, `no_question`, `mixed_tools`, `invalid_params`. It reaches the debug log and `explain` (BT-7), not the wire.',
  },
  {
    id: 'EL-5',
    part: 'child',
    sentence:
      "Main session only: `ask_user_question` is offered to the main session alone; a branch call's own load of the fork is suppressed; a later load of the fork is an ordinary one.",
  },
  {
    id: 'LS-1',
    part: 'child',
    sentence:
      'One decision a load or resume: the set of call ids that will be asked again (*open*), computed once. Repair leaves exactly *open* and what a turn running in this process waits for (*waiting*); replay leaves exactly those `in_progress`; the response carries `_meta["qwen.daemon.restoreAskUserQuestion"]: true` exactly when *open* is not empty. No second place computes it.',
  },
  {
    id: 'LS-2',
    part: 'child',
    sentence:
      'A suppressed request (`_meta["qwen.daemon.suppressRestoreAskUserQuestion"]: true`) opens nothing: repaired, replayed as `failed`, no hint. Only the boolean `true` counts, for both keys; absent is absent, never `false`.',
  },
  {
    id: 'LS-3',
    part: 'child',
    sentence:
      'The set comes from the live chat where the session is live, otherwise from the transcript; both give the same set for the same session (cold bulk replay included).',
  },
  { id: 'LS-4', part: 'child', sentence: '`qwen/session/loadUpdates` opens nothing.' },
  {
    id: 'LS-5',
    part: 'child',
    sentence:
      'With the switch off, frames and files are equal with and without either key on the request, and no helper of the feature is called.',
  },
  {
    id: 'LS-6',
    part: 'child',
    sentence:
      'Just before every request to the model, whatever dangles is closed with a synthetic error response: a model turn with function calls is always followed by their responses. On the restore path the real response is already there, so this changes nothing.',
  },
  {
    id: 'LS-7',
    part: 'child',
    sentence:
      "Two loads or resumes of one session at the same time: each gets the outcome of its own request's keys. A suppressed one opens nothing and closes nothing that another opened.",
  },
  {
    id: 'RS-0',
    part: 'child',
    sentence:
      'What a first-asked question and a re-asked one persist, emit and send is the same code with the same outcomes; where they differ, a row here says so.',
  },
  {
    id: 'RS-1',
    part: 'child',
    sentence:
      '`session/prompt` with `_meta["qwen.daemon.restoreAskUserQuestion"]: true` (prompt empty or not; its content is ignored). Switch on: eligibility is checked again on the live chat, and every call must be *open* by some load; if not, `end_turn` at once, nothing asked, nothing recorded. Switch off: the key is ignored; an empty prompt falls to ACP-14, another is an ordinary turn.',
  },
  {
    id: 'RS-2',
    part: 'child',
    sentence:
      'Each question of the batch is asked in turn by `session/request_permission` in the recorded shape (`proceed_once` and `cancel` options; `toolCall._meta` with `qwenInteractionKind: user_question` and `qwenQuestions`), under a new id, with a fresh clock and the same tool call id.',
  },
  {
    id: 'RS-3',
    part: 'child',
    sentence:
      'Answers come back in `answers` at the root of the response (as the reference has it) or in `_meta["qwen.answers"]`, keyed by the question\'s index as a string; a choice, free text as typed, or for multi-select a list of labels or the labels joined by ", ". An empty string or list is no answer, nor is any value of another type, a key out of range or a list as `answers`; the root wins over `_meta`. They become the function response (`response.output`, a text naming each question\'s header and answer) and `rawOutput` in the recorded shape. `proceed_once` without any valid answer fails the call (the response says that no answer was given); the turn goes on with the model.',
  },
  {
    id: 'RS-4',
    part: 'child',
    sentence:
      "Answered: the real function response is persisted and the same turn goes on with the model: no user message, no file-history snapshot. Pending notices ride in the message after the function responses and are cleared only once that message has landed: a worktree notice (the recorded working directory or git branch is not today's) and a recovered-agent notice (background work that ran when the process died).",
  },
  {
    id: 'RS-5',
    part: 'child',
    sentence:
      'Declined (the `cancel` option, or outcome `cancelled` without an unattended reason): one decline is persisted, the turn ends with `end_turn`, the model is not called.',
  },
  {
    id: 'RS-6',
    part: 'child',
    sentence:
      'Unattended: `_meta["qwen.daemon.permissionCancelReason"]` is `timeout` or `session_closed` (turn ends `end_turn`), or the turn was aborted by cancel, EOF, a signal or close (`cancelled`). Nothing of the whole batch is persisted in the transcript, not even its answered questions; the calls stay dangling and a later load asks them again. A `failed` update still closes the card, with a text that does not blame the person. For first-asked questions this holds with the switch on (BT-1); with it off, as recorded. A person\'s `session/cancel` closes a first-asked question (persisted, as recorded) but not a restored one (nothing persisted): the seeds\' abort.',
  },
  {
    id: 'RS-7',
    part: 'child',
    sentence:
      "A client's JSON-RPC error instead of an answer, a malformed outcome or an option that was not offered is a failed tool call of that question, persisted; it ends the turn like a decline; never a crash and never an answer.",
  },
  {
    id: 'RS-8',
    part: 'child',
    sentence:
      '`continue`: with the switch on and a restorable, open tail `{accepted: false, interruption: "none"}`; a prompt in flight `{accepted: false, ...}`. Otherwise: a tail of dangling calls (switch off, suppressed, mixed) is `interrupted_turn`, and continuing it answers them with a synthetic error; a tail of function responses that the model has not seen is `interrupted_turn` too, and continuing it sends them; a user message without a reply is `interrupted_prompt`; a turn that a person cancelled and a finished one are `none`. The continue turn is `session/prompt` with `qwen.daemon.continueLastTurn: true` (restorable: `end_turn`, nothing done). (The reference says `interrupted_prompt` for both, having repaired before it looks; the seeds\' word is ours.)',
  },
  {
    id: 'RS-9',
    part: 'child',
    sentence:
      'A restore and an ordinary prompt never both run. A restore prompt that arrives while a question waits gets `end_turn` at once and leaves it untouched. An ordinary prompt that comes first closes the question (LS-6, BT-5); a restore after that is `end_turn`. An ordinary prompt while a question waits in the child is ACP-8; the daemon queues it instead.',
  },
  {
    id: 'RS-10',
    part: 'child',
    sentence:
      'A batch of two: answered, answered: both persisted in call order in one write, turn goes on. Answered, declined: both persisted, `end_turn`. Declined first: the second is not asked and is persisted as skipped. Answered, error: both persisted, `end_turn`. Answered, unattended: nothing persisted.',
  },
  {
    id: 'DM-1',
    part: 'daemon',
    sentence:
      '`qwen-acp serve --port N --hostname H` (defaults 4170 and 127.0.0.1; 0 takes a free port) prints one line with its URL when it listens. Routes, bodies, status codes, error objects (`{error, code, ...}`), headers (`X-Qwen-Client-Id`) and server-sent events as recorded: `POST /session`, `/session/:id/load`, `/resume`, `/prompt`, `/cancel`, `/continue`, `/branch`, `/detach`, `/heartbeat`, `DELETE /session/:id`, `GET /session/:id/status`, `/events`, `/transcript`, `GET /workspace/:cwd/sessions` (cwd URL-encoded; live and saved sessions, each live one with the fields of DM-2), `POST /session/:id/permission/:requestId`, `POST /permission/:requestId`, `GET /health`, `GET /capabilities`.',
  },
  {
    id: 'DM-2',
    part: 'daemon',
    sentence:
      '`GET /session/:id/status` shows `isWaitingForUserQuestion`, `isWaitingForPermission`, `pendingInteractionCount`, `pendingInteractions` (with `requestId`, `kind`, `questions` with `answerKey`, `options`), `hasActivePrompt`, `clientCount` and the rest as recorded.',
  },
  {
    id: 'DM-3',
    part: 'daemon',
    sentence:
      "After a load or resume that carries the hint, and only with the daemon's own switch on, an attached client id on the request, no branch in this call, and the session idle at that moment (`promptActive`, `pendingPromptCount`, `goalTurnActive` all clear), the daemon admits a tracked restore prompt through the same admission as any prompt, before it answers the load (`hasActivePrompt: true`); only the turn is not awaited. Refusal or failure is logged and swallowed: the load has succeeded. The hint is taken off the response before a client sees it. Concurrent loads are coalesced unless one has a client and the other has not (LS-7); a load during a resume, or the reverse, waits for it or is a 409 `restore_in_progress` with Retry-After.",
  },
  {
    id: 'DM-4',
    part: 'daemon',
    sentence:
      'When it knows that it will not (no client id, branch), the child-bound request carries the suppress key. Keepalive, boot and sub-session restores pass no client id. With its switch off it sends neither key.',
  },
  {
    id: 'DM-5',
    part: 'daemon',
    sentence:
      "A client cannot smuggle: of an external `_meta`, on every route, only an allow-list passes to the child (W3C trace context); a vote's cancel reason is the daemon's own.",
  },
  { id: 'DM-6', part: 'daemon', sentence: 'Booting scans nothing and resumes nothing.' },
  {
    id: 'DM-7',
    part: 'daemon',
    sentence:
      "Votes go through one mediator with four policies (`--permission-strategy`, `--consensus-quorum`, or `policy.permissionStrategy` / `policy.consensusQuorum` in the settings): `first-responder` (default), `designated` (the prompt's originator, for a restore the loading client's registered id; without one, first-responder), `consensus` (voters are those attached when it was issued; quorum floor(M/2)+1 unless set, never more than M; a vote short of it is recorded and announced as `permission_partial_vote`), `local-only` (loopback). A cancel vote ends it under every policy. 200 `{}`; 404 unknown, or already resolved (`code: permission_already_resolved` and the outcome); 403 `permission_forbidden` with the reason; 400 malformed. A client that disconnects decides nothing. A second client that loads while a question hangs sees the same request id.",
  },
  {
    id: 'DM-8',
    part: 'daemon',
    sentence:
      'A new `requestId` (UUID) each time; none is written to disk. `--permission-response-timeout-ms` (0 = wait for ever, the default) starts anew with each; a timeout never fabricates an answer or a decline.',
  },
  {
    id: 'DM-9',
    part: 'daemon',
    sentence:
      'Events: numbered per session, `Last-Event-ID` resumes from a bounded ring, an epoch tells a client that the daemon was restarted, slow readers are cut off and never slow the others. `permission_resolved` says how (outcome, and `reason` for a timeout, a closed session, a decline); answers are not broadcast.',
  },
  {
    id: 'DM-10',
    part: 'daemon',
    sentence:
      'A child that dies takes its requests with it (events say so), and the next call starts a new one; sessions in it can be loaded again. The daemon never dies of a child.',
  },
  {
    id: 'DM-11',
    part: 'daemon',
    sentence:
      'Stopping the daemon (SIGTERM, SIGINT, SIGHUP) resolves what hangs as `session_closed` toward the child, tells subscribers, ends the child, exits 0 within 5 s.',
  },
  {
    id: 'DM-12',
    part: 'daemon',
    sentence:
      'Safe by default: loopback only unless a token is set; bearer token (`--token`, `QWEN_SERVER_TOKEN`, constant-time compare) and `--require-auth`; Host and Origin checks against DNS rebinding and cross-site requests on every route, `--allow-origin`; a body on a mutating route must be JSON by its content type (415), a POST without a body needs none but still passes the Origin check; bodies limited (10 MiB); caps on sessions, pending prompts (503), pending permissions, connections; session and client ids validated. No secret, prompt or answer in a log.',
  },
  {
    id: 'DM-13',
    part: 'daemon',
    sentence:
      "`QWEN_CLI_ENTRY` in the daemon's environment names another child script, as in the reference; with the reference's own `cli.js` as the child (Node 22.12 or later runs both) everything in this section holds too, but for rows of section 9 that only a child can keep.",
  },
  {
    id: 'MD-1',
    part: 'child',
    sentence:
      '`gemini` and `vertex-ai` over `@google/genai` (`GOOGLE_GEMINI_BASE_URL` honoured), streaming, thinking, tool calls, usage.',
  },
  {
    id: 'MD-2',
    part: 'agent',
    sentence:
      '`openai` for every OpenAI-compatible endpoint (`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_MODEL`: DashScope, vLLM, Ollama), streaming, `reasoning_content`, parallel tool calls. `anthropic` likewise.',
  },
  {
    id: 'MD-3',
    part: 'child',
    sentence:
      '`scripted`: an embedded model that needs no key and no network and plays a script (documented format: match on the last message, then text, thoughts, tool calls, delays, errors), for the demo, the tests and the conformance kit.',
  },
  {
    id: 'MD-4',
    part: 'child',
    sentence:
      'Provider errors (401, 429 with retry-after, 5xx, broken stream, empty reply) become a clear ACP error or a retry with backoff; the history stays valid.',
  },
  {
    id: 'MD-5',
    part: 'child',
    sentence:
      'What a provider put on its model turn goes back to it verbatim, after a restart too: its own call ids, thought signatures, `reasoning_content`, unknown fields of a part. Ids that we invent are stored and unique in the session; where a provider uses an id again, the client sees a distinct tool call id and the provider its own.',
  },
  {
    id: 'TL-1',
    part: 'agent',
    sentence:
      "`ask_user_question` with the reference's schema; `read_file`, `list_directory`, `glob`, `grep_search`, `edit`, `write_file`, `run_shell_command`, `todo_write` (as ACP `plan`) with the reference's names; through the client's `fs` and `terminal` where it offers them; approval modes `plan`, `default`, `auto-edit`, `yolo`. A question is asked in every mode.",
  },
  {
    id: 'TL-2',
    part: 'agent',
    sentence:
      'MCP servers given in `session/new`, `load` and `resume` (stdio as the protocol demands, http and sse) offer their tools.',
  },
  {
    id: 'BT-1',
    part: 'child',
    sentence:
      'A question survives a clean stop. With the switch on, SIGTERM, SIGINT, SIGHUP, EOF, session close, a permission timeout and daemon shutdown while a question hangs, first asked or asked again, persist nothing; the next load asks again. (The reference persists "cancelled" for a first-asked question on all of these but SIGKILL and SIGHUP, so an ordinary deploy loses it.)',
  },
  {
    id: 'BT-2',
    part: 'child',
    sentence:
      "Loading or resuming a session whose turn is running in the same process answers at once from the live session, finalizes nothing in flight, asks nothing twice and gives no hint. (The reference's load never answers.)",
  },
  {
    id: 'BT-3',
    part: 'daemon',
    sentence:
      '`consensus` counts the answers, not the button: two voters with different answers have not agreed; a voter may vote again.',
  },
  {
    id: 'BT-4',
    part: 'daemon',
    sentence:
      "An accepted vote is never asked for again: before its 200, the answer or decline is on disk (fsync) in the daemon's journal, keyed by session, call id and a hash of the questions; a re-issued request for it is answered from there, without a `permission_request` event. It is kept over timeout, shutdown and crash (so of a batch only what was not answered is asked again), dropped when a person cancels the turn, and removed when a load no longer asks the call, or after 30 days.",
  },
  {
    id: 'BT-5',
    part: 'child',
    sentence:
      "What an ordinary or continue turn closes is closed on disk: for every dangling call the closing response is written before the user's message, switch on or off, so that any reader finds a valid history.",
  },
  {
    id: 'BT-6',
    part: 'agent',
    sentence:
      'Every ACP client can answer. A client that advertises form elicitation and is no daemon gets `elicitation/create` with the questions as fields (decline is not cancel). With `--plain-client` a client without it gets, for a single-choice question, one permission option a choice plus Skip, and for several questions one request each. In every form a `proceed_once` with answers is accepted. (Under the reference such a client can only press Submit, and the model is told that there were no valid answers.)',
  },
  {
    id: 'BT-7',
    part: 'agent',
    sentence:
      '`qwen-acp explain <session id or file>` prints the verdict, each rule with yes or no, and what a load would do.',
  },
  { id: 'BT-8', part: 'child', sentence: 'Fast: see section 10.' },
  {
    id: 'BT-9',
    part: 'agent',
    sentence:
      "A plain editor is asked again, too: with `--plain-client` (for clients that know nothing of qwen's own keys; no effect when the client is a daemon) and the switch on, the child itself starts the restore turn right after a load or resume response that carries the hint. A client's refusal or error to such an unsolicited request is unattended, not a decline. A restore prompt from the client joins the turn, an ordinary prompt supersedes it. (Under the reference a plain client gets a card that nothing ever answers.)",
  },
  {
    id: 'BT-10',
    part: 'child',
    sentence:
      "Nothing is decided for ever by accident. After an unattended end, and after a load without a client, a later load with a client re-asks, in the same process too: the live history keeps the call dangling, repair is a view of it, what is sent to the model is closed at the moment of sending, and the session holds which calls are *open* (this replaces the seeds' one-time repair at start; nobody sees a difference but here). A restore prompt after a suppressed load alone is still `end_turn`. (In the reference the question is gone until the daemon is restarted.)",
  },
  {
    id: 'BT-11',
    part: 'daemon',
    sentence:
      'Whoever comes late sees it: a subscriber to the events without `Last-Event-ID` first gets the hanging `permission_request`s, same ids.',
  },
  {
    id: 'BT-12',
    part: 'daemon',
    sentence:
      'A vote in a wrong shape (answers that are no object of strings or lists, a `proceed_once` for a question without a valid answer, an unoffered or empty option, `invalid_option_id`) is a 400 that names the fault, the question still waits and nothing is journaled. (The reference answers 200 and drops the answers.)',
  },
  {
    id: 'BT-13',
    part: 'child',
    sentence:
      '`--plain-client`, `explain`, elicitation and the journal change nothing for a client or daemon that does not use them.',
  },
  {
    id: 'PF-1',
    part: 'child',
    sentence:
      'spawn to `initialize` response at most 2.0 times `node -e 0` (the reference: 39; claude-agent-acp: 6.2; a bare agent of 120 lines: 1.2), to `session/new` at most 2.5 times; peak memory then at most 70 MB, one process. Aim: 1.5.',
  },
  {
    id: 'PF-2',
    part: 'child',
    sentence:
      '`session/resume`, the restore decision and a page of 100 cost what the tail costs, not the file: 100,000 records at most 2 times 100 records (the reference: 10 times reading and parsing the whole file).',
  },
  {
    id: 'PF-3',
    part: 'child',
    sentence:
      "`session/load` of 100,000 records (220 MB) at most 2.0 times reading the file and parsing every line (the reference: 17; aim: 1.2), first update within 0.6 of it (the reference: 11), peak memory of a streamed load at most 150 MB over idle, whatever the file's size, until the first prompt needs the history; 100 records in at most 15 ms.",
  },
  {
    id: 'PF-4',
    part: 'child',
    sentence:
      "2,000 streamed deltas: at most 15 µs each after the first frame (the reference: 250 to 350); a turn of 5 deltas at most 10 ms beyond the model's own time (450); answer to `completed` update at most 4 ms plus the fsync (9).",
  },
  {
    id: 'PF-5',
    part: 'daemon',
    sentence:
      'The daemon answers `/health` at most 4 times `node -e 0` after spawn, after a crash too (the reference: 20 and 60); later `POST /session` at most 10 ms (52); load over HTTP of 10,000 records to waiting-for-the-answer at most 0.5 s (2.2); 50 subscribers at most 5 µs an event each and none cut off by a burst of 2,000 (15, and 55 cut off).',
  },
  {
    id: 'PF-6',
    part: 'daemon',
    sentence:
      'A waiting question costs the daemon at most 20 KB; 10,000 of them wait in one daemon, and a vote on any is answered in under 10 ms at the median.',
  },
];
