// biome-ignore lint/suspicious/noExplicitAny: updates of every form
type Json = any;

/** UTF-16 units of a command's output above which the reference shortens what it shows of it. */
const LONG = 20_000;

/** Leaves out what is worded by the program that reads, and what docs/INTEROP.md says that it shows otherwise. */
export function comparable(update: Json): Json {
  switch (update.sessionUpdate) {
    case 'tool_call':
      // The reference has this tool switched off, so it does not know its card.
      return update._meta?.toolName === 'list_directory' ? { ...update, title: '', kind: '' } : update;
    case 'tool_call_update':
      if (update.status === 'failed') return { ...update, content: '<why it failed>' };
      return { ...update, content: update.content.map(comparableContent), rawOutput: shortened(update.rawOutput) };
    case 'plan': {
      const { stats: _, ...meta } = update._meta;
      return { ...update, _meta: meta };
    }
    default:
      return update;
  }
}

const comparableContent = (content: Json): Json =>
  content.type === 'diff' ? { ...content, oldText: content.oldText ?? '' } : content;

function shortened(output: Json): Json {
  if (typeof output?.text !== 'string' || output.text.length < LONG) return output;
  return { ...output, text: '<long>', output: '<long>' };
}
