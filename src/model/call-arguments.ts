import { UNREADABLE_ARGUMENTS } from '../session/ports.ts';

/** The arguments of a call from their text; none at all are an empty object. */
export function parseArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
    // A model or a server in between wrote the arguments as a JSON string that holds them.
    if (typeof parsed === 'string' && parsed.trim().startsWith('{')) return parseArguments(parsed);
    if (parsed === null) return {};
  } catch {
    // Cut off, or never JSON.
  }
  return { [UNREADABLE_ARGUMENTS]: text };
}

/** Whether a text is a whole JSON object. */
export function isWholeObject(text: string): boolean {
  return text.trim().startsWith('{') && !(UNREADABLE_ARGUMENTS in parseArguments(text));
}
