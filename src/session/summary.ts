import type { Part } from '@google/genai';
import { parseCommand } from './commands.ts';
import type { SessionEvent } from './ports.ts';

/** What the first and last kilobytes of a transcript say of its session. */
export interface SessionSummary {
  readonly cwd: string;
  readonly title?: string;
  readonly createdAt?: string;
}

/** UTF-16 units; enough for one line of a list. */
const LONGEST_TITLE = 80;

/** The inside of a JSON string; in a text that is cut, what is whole of it. */
const STRING = String.raw`(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*`;
const FIRST_TEXT = new RegExp(String.raw`"parts":\[\{"text":"(${STRING})`);

/**
 * Reads a session's summary from the two ends of its transcript, which may be cut anywhere. Undefined when the head
 * holds no record of this session. Pure.
 */
export function readSummary(sessionId: string, head: string, tail: string): SessionSummary | undefined {
  const first = head.split('\n').find((line) => belongsTo(line, sessionId));
  const cwd = first && stringField(first, 'cwd');
  if (first === undefined || cwd === undefined) return undefined;
  const title = nameIn(tail) ?? promptIn(head);
  const createdAt = stringField(first, 'timestamp');
  return {
    cwd,
    ...(title === undefined ? {} : { title }),
    ...(createdAt === undefined ? {} : { createdAt }),
  };
}

function belongsTo(line: string, sessionId: string): boolean {
  return stringField(line, 'sessionId')?.toLowerCase() === sessionId;
}

/**
 * A record's own string field. A whole line is parsed; of a line that the head cuts, only what stands before its
 * message is looked at, where the fields of every record are and nobody else's text can be.
 */
function stringField(line: string, key: string): string | undefined {
  const record = parseObject(line);
  if (record !== undefined) return typeof record[key] === 'string' ? record[key] : undefined;
  if (!line.startsWith('{"uuid":')) return undefined;
  const fields = line.slice(0, line.search(/"(message|systemPayload|toolCallResult)":/) >>> 0);
  return decode(new RegExp(`"${key}":"(${STRING})"`).exec(fields)?.[1]);
}

/** The newest name that the session was given; renaming appends a record. */
function nameIn(tail: string): string | undefined {
  for (const line of tail.split('\n').reverse()) {
    if (!line.includes('"custom_title"')) continue;
    const record = parseObject(line);
    if (record?.['type'] !== 'system' || record['subtype'] !== 'custom_title') continue;
    const name = (record['systemPayload'] as { customTitle?: unknown } | null | undefined)?.customTitle;
    if (typeof name === 'string' && name.trim() !== '') return oneLine(name);
  }
  return undefined;
}

/** How the first thing begins that a person said. */
function promptIn(head: string): string | undefined {
  for (const line of head.split('\n')) {
    if (stringField(line, 'type') !== 'user') continue;
    const text = decode(FIRST_TEXT.exec(line)?.[1]);
    if (text !== undefined && text.trim() !== '' && parseCommand(text) === undefined) return oneLine(text);
  }
  return undefined;
}

/** What a session is called that begins with this message, for its client; undefined where it has no text. */
export function titleEvent(parts: readonly Part[]): Extract<SessionEvent, { kind: 'title' }> | undefined {
  const text = parts.find((part) => part.text?.trim())?.text;
  return text === undefined ? undefined : { kind: 'title', title: oneLine(text) };
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  if (line.length <= LONGEST_TITLE) return line;
  return `${line.slice(0, LONGEST_TITLE - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

function decode(inside: string | undefined): string | undefined {
  if (inside === undefined) return undefined;
  try {
    return JSON.parse(`"${inside}"`) as string;
  } catch {
    return undefined;
  }
}
