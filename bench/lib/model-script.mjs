// What the fake model says, whatever the wire: decided by the last text of the user, so that any agent can drive it.
//   [[text k=2000 len=6]]                  k text deltas of len characters, sent at once
//   [[think k=10 len=40 text=5]]           thought deltas, then text deltas
//   [[tool name=NAME args=BASE64JSON]]     one tool call; after its result the text TOOL-DONE
// Anything else (titles, memory, ...) is answered "ok".

const MARKER = /\[\[(text|think|tool)\s+([^\]]*)\]\]/;

/** The texts of `count` deltas, each different, printable and `length` characters long. */
export function deltaTexts(count, length) {
  return Array.from({ length: count }, (_, index) => {
    const letters = index.toString(36) + 'abcdefghijklmnopqrstuvwxyz'.repeat(Math.ceil(length / 26));
    return `${letters.slice(0, Math.max(1, length - 1))} `;
  });
}

/**
 * The model's reply to a conversation, given as `{role: 'user' | 'assistant' | 'tool', text}` in order:
 * `{kind, thoughts, texts, call?, result?}` with kind text, think, tool, toolDone or ok.
 */
export function reply(turns) {
  for (const turn of [...turns].reverse()) {
    if (turn.role === 'tool') return { kind: 'toolDone', thoughts: [], texts: ['TOOL-DONE'], result: turn.text };
    if (turn.role !== 'user') break;
    const marker = MARKER.exec(turn.text);
    if (marker) return scripted(marker[1], keyValues(marker[2]));
  }
  return { kind: 'ok', thoughts: [], texts: ['ok'] };
}

const keyValues = (text) =>
  Object.fromEntries(
    text
      .trim()
      .split(/\s+/)
      .map((pair) => pair.split(/=(.*)/s, 2)),
  );

function scripted(kind, options) {
  const length = +(options.len ?? 4);
  if (kind === 'text') return { kind, thoughts: [], texts: deltaTexts(+options.k, length) };
  if (kind === 'think') {
    return { kind, thoughts: deltaTexts(+options.k, length), texts: deltaTexts(+(options.text ?? 1), length) };
  }
  const args = Buffer.from(options.args, 'base64').toString('utf8');
  return { kind, thoughts: [], texts: [], call: { name: options.name, args } };
}
