// The wire of the reference agent: frames are joined into slices, so that a replay honours the pipe's back-pressure.
const SLICE = 1 << 18;
const waiting = new Map();
let slice = [];
let sliceLength = 0;
let requests = 0;

function put(text) {
  slice.push(text);
  sliceLength += text.length;
}

/** Writes what was put; false when the pipe is full. */
export function flush() {
  if (!slice.length) return true;
  const text = slice.join('');
  slice = [];
  sliceLength = 0;
  return process.stdout.write(text);
}

/** Writes a full slice and waits for the pipe. */
export async function flushFull() {
  if (sliceLength > SLICE && !flush()) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

export function send(message) {
  put(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  flush();
}

/** Puts updates of one session. */
export function updater(sessionId) {
  const head = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":${JSON.stringify(sessionId)},"update":`;
  return (update) => put(`${head}${JSON.stringify(update)}}}\n`);
}

export function ask(method, params) {
  const id = `r${requests++}`;
  const answered = new Promise((resolve) => waiting.set(id, resolve));
  send({ id, method, params });
  return answered;
}

export function settle(message) {
  waiting.get(message.id)?.(message.result);
  waiting.delete(message.id);
}
