// Generated transcripts, kept under the work folder from run to run, with what is expected of them.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { closedSignature, expectedReplay, historyItems } from './expect.mjs';
import { chatPath, generate } from './gen.mjs';
import { parsedLines } from './lines.mjs';

const OURS = /^[ab]{8}-1111-/;
const COPY_EACH_TIME = 64e6;
const cache = new Map();

/** `{count, sessionId, file, bytes, closed, open, page, history}`: signatures of a replay that closes the tail or not. */
export function transcriptOf(bench, count, question) {
  const sessionId = `${(question ? 'a' : 'b').repeat(8)}-1111-4111-8111-${String(count).padStart(12, '0')}`;
  const key = `${bench.cwd} ${sessionId}`;
  if (!cache.has(key)) cache.set(key, describe(ensureFile(bench, sessionId, count, question), sessionId, count));
  return cache.get(key);
}

function ensureFile({ work, cwd }, sessionId, count, question) {
  // The records name the workspace: a moved work folder needs new ones.
  const tag = crypto.createHash('sha1').update(cwd).digest('hex').slice(0, 8);
  const file = path.join(work, 'data', `v1-${tag}`, `${sessionId}.jsonl`);
  if (fs.existsSync(file)) return file;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  // Renamed when whole, or an interrupted run would leave half a file for the next.
  generate(`${file}.part`, { count, sessionId, cwd, question });
  fs.renameSync(`${file}.part`, file);
  return file;
}

function describe(file, sessionId, count) {
  const { signatures, open } = expectedReplay(parsedLines(file));
  const closed = [...signatures, ...open.map(closedSignature)];
  const history = count <= 200 ? historyItems(parsedLines(file)) : [];
  return {
    count,
    sessionId,
    file,
    bytes: fs.statSync(file).size,
    closed,
    open: signatures,
    page: pageOf(file, 100),
    history,
  };
}

/** A page of `size`: the last `size` records, cut back to the first turn that begins among them. */
function pageOf(file, size) {
  const records = [];
  for (const record of parsedLines(file)) {
    records.push(record);
    if (records.length > size) records.shift();
  }
  const first = records.findIndex((record) => record.type === 'user');
  if (first === -1) throw new Error('a page of the transcript holds no turn');
  const { signatures, open } = expectedReplay(records.slice(first));
  return [...signatures, ...open.map(closedSignature)];
}

/** Puts the transcript where the agent looks for it, alone with other transcripts of the bench; returns its path. */
export function place(home, cwd, transcript) {
  const target = chatPath(home, cwd, transcript.sessionId);
  const folder = path.dirname(target);
  fs.mkdirSync(folder, { recursive: true });
  for (const name of fs.readdirSync(folder)) {
    if (!OURS.test(name) || !name.endsWith('.jsonl')) fs.rmSync(path.join(folder, name), { recursive: true });
  }
  // A transcript only grows: cutting a large one back is as good as a copy and leaves no 220 MB for the disk to write.
  const size = fs.statSync(target, { throwIfNoEntry: false })?.size ?? 0;
  if (transcript.bytes > COPY_EACH_TIME && size >= transcript.bytes) fs.truncateSync(target, transcript.bytes);
  else fs.copyFileSync(transcript.file, target);
  return target;
}
