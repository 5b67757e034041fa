import type { Content, Part } from '@google/genai';
import { danglingCalls } from './dangling.ts';
import { pairCalls } from './pairing.ts';
import { CALL_NEVER_FINISHED, SUMMARY_ACKNOWLEDGED, summaryMessage } from './texts.ts';

/** What of a history a summary is made of, and what stays as it is. */
export interface CompressionPlan {
  readonly older: readonly Content[];
  readonly kept: readonly Content[];
}

/** The share of a history that is kept as it is, where its turns allow it. */
const KEPT = 0.3;
/** UTF-16 units that are read of one message or result. */
const LONGEST_ITEM = 4_000;
/** Of a whole text that is too long, this share is taken from its beginning. */
const HEAD = 0.25;

/**
 * Cuts a history where a person's message begins, so that no call is parted from its response: behind the cut is the newest
 * part of it, with the calls that its end leaves open as they are. A history that is over may be summarized as a whole.
 * Undefined where there is nothing to cut off.
 */
export function planCompression(history: readonly Content[]): CompressionPlan | undefined {
  const open = danglingCalls(history).length > 0 ? history.findLastIndex(({ role }) => role === 'model') : -1;
  const closed = pairCalls(open === -1 ? history : history.slice(0, open), CALL_NEVER_FINISHED);
  const contents = open === -1 ? closed : [...closed, ...history.slice(open)];
  const limit = KEPT * sizeOf(contents);
  let cut = 0;
  let size = 0;
  for (let at = contents.length - 1; at > 0; at--) {
    size += sizeOf([contents[at]!]);
    if (cut > 0 && size > limit) break;
    if (isPersons(contents[at]!)) cut = at;
  }
  if (cut === 0 && open === -1 && contents.at(-1)?.role === 'model') cut = contents.length;
  return cut === 0 ? undefined : { older: contents.slice(0, cut), kept: contents.slice(cut) };
}

function isPersons({ role, parts }: Content): boolean {
  return role === 'user' && (parts?.length ?? 0) > 0 && !parts?.some(({ functionResponse }) => functionResponse);
}

/** The history that takes the place of one that was cut. */
export function compressedContents(summary: string, kept: readonly Content[]): Content[] {
  return [
    { role: 'user', parts: [{ text: summaryMessage(summary) }] },
    { role: 'model', parts: [{ text: SUMMARY_ACKNOWLEDGED }] },
    ...kept,
  ];
}

/** How large contents are, in UTF-16 units of their JSON. */
export function sizeOf(contents: readonly Content[]): number {
  return contents.reduce((size, content) => size + JSON.stringify(content).length, 0);
}

/** About how many tokens that is. */
export const tokensOf = (contents: readonly Content[]): number => Math.ceil(sizeOf(contents) / 4);

/** A history as a text of at most about `limit` UTF-16 units, for whoever is to summarize it. */
export function conversationText(contents: readonly Content[], limit: number): string {
  const text = contents.flatMap(({ role, parts }) => (parts ?? []).flatMap((part) => lineOf(role, part))).join('\n\n');
  if (text.length <= limit) return text;
  const head = Math.floor(limit * HEAD);
  return `${text.slice(0, head)}\n\n[…]\n\n${text.slice(text.length - (limit - head))}`;
}

function lineOf(
  role: string | undefined,
  { text, thought, functionCall, functionResponse, inlineData }: Part,
): string[] {
  if (functionCall) return [`Call of ${functionCall.name}: ${cut(JSON.stringify(functionCall.args ?? {}))}`];
  if (functionResponse) {
    const { output, error } = functionResponse.response ?? {};
    const said = output ?? error ?? functionResponse.response ?? '';
    return [`Result of ${functionResponse.name}: ${cut(typeof said === 'string' ? said : JSON.stringify(said))}`];
  }
  if (inlineData) return [`${speaker(role)}: [${inlineData.mimeType ?? 'data'}]`];
  return text && thought !== true ? [`${speaker(role)}: ${cut(text)}`] : [];
}

const speaker = (role: string | undefined): string => (role === 'model' ? 'Assistant' : 'Person');

function cut(text: string): string {
  return text.length <= LONGEST_ITEM ? text : `${text.slice(0, LONGEST_ITEM)} […]`;
}
