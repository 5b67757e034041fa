import type { Content, Part } from '@google/genai';
import { hostOf } from './endpoint.ts';
import type { ModelRequest } from '../session/ports.ts';
import { CallIds, type IdRule } from './call-ids.ts';
import { parametersOf } from './json-schema.ts';
import { type Media, mediaOf, resultOf, unsendable } from './media.ts';
import { isForeign, providerDataOf } from './provider-data.ts';

/** What servers of this protocol differ in. */
export interface OpenAiDialect {
  /** Thoughts go back: where a model thinks between its calls, it must find them there. */
  readonly thoughts: boolean;
  /** The model can be shown images and the like. */
  readonly media: boolean;
  readonly ids: IdRule;
}

/** A server's own ids go back as they are, even where it uses one again. */
const ANY_ID: IdRule = { allowed: /^[^\s]+$/, maxLength: 256, unique: false };

export function dialectOf(baseUrl: string | undefined): OpenAiDialect {
  const openAi = baseUrl === undefined || hostOf(baseUrl) === 'api.openai.com';
  // OpenAI itself sends no thoughts here, refuses those of others, and ids of more than 40 characters.
  return { thoughts: !openAi, media: true, ids: openAi ? { ...ANY_ID, maxLength: 40 } : ANY_ID };
}

export type OpenAiMessage = { readonly role: string } & Readonly<Record<string, unknown>>;

/** What a conversation has that a server may refuse. */
export interface Converted {
  readonly messages: readonly OpenAiMessage[];
  readonly hasThoughts: boolean;
  readonly hasMedia: boolean;
}

/** The conversation as chat messages. Each model turn goes back as it came, but for what another provider made. */
export function openAiMessages(request: ModelRequest, dialect: OpenAiDialect): Converted {
  const ids = new CallIds(dialect.ids);
  const seen = { thoughts: false, media: false };
  const messages: OpenAiMessage[] = [];
  if (request.systemInstruction !== '') messages.push({ role: 'system', content: request.systemInstruction });
  for (const content of request.contents) {
    if (content.role === 'model') messages.push(...assistantMessage(content, ids, dialect, seen));
    else messages.push(...userMessages(content, ids, dialect, seen));
  }
  return { messages, hasThoughts: seen.thoughts, hasMedia: seen.media };
}

interface Seen {
  thoughts: boolean;
  media: boolean;
}

function assistantMessage(content: Content, ids: CallIds, dialect: OpenAiDialect, seen: Seen): OpenAiMessage[] {
  const parts = content.parts ?? [];
  const names = ids.ofCalls(content);
  const text = parts.map((part) => (part.thought ? '' : (part.text ?? ''))).join('');
  const calls = parts
    .filter(({ functionCall }) => functionCall)
    .map((part, index) => ({
      ...providerDataOf(part, 'openai')?.fields,
      id: names[index],
      type: 'function',
      function: { name: part.functionCall?.name ?? '', arguments: JSON.stringify(part.functionCall?.args ?? {}) },
    }));
  // A turn that was stopped while the model thought said nothing.
  if (text === '' && calls.length === 0) return [];
  const thoughts = dialect.thoughts ? thoughtFields(parts) : {};
  if (Object.keys(thoughts).length > 0) seen.thoughts = true;
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...thoughts,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

function thoughtFields(parts: readonly Part[]): Record<string, unknown> {
  const text = parts.map((part) => (part.thought && !isForeign(part, 'openai') ? (part.text ?? '') : '')).join('');
  const data = parts.map((part) => (part.functionCall ? undefined : providerDataOf(part, 'openai')));
  const field = data.find((each) => each?.thoughtField)?.thoughtField ?? 'reasoning_content';
  return Object.assign(text === '' ? {} : { [field]: text }, ...data.map((each) => each?.fields));
}

/** The results of the calls first, each a message, then what the person said. */
function userMessages(content: Content, ids: CallIds, dialect: OpenAiDialect, seen: Seen): OpenAiMessage[] {
  const messages: OpenAiMessage[] = [];
  const media: Media[] = [];
  for (const part of content.parts ?? []) {
    if (part.functionResponse) {
      const { text, shown } = resultOf(part.functionResponse);
      messages.push({ role: 'tool', tool_call_id: ids.ofResponse(part.functionResponse.id), content: text });
      media.push(...shown.flatMap((each) => mediaOf(each) ?? []));
    } else {
      const one = mediaOf(part);
      if (one !== undefined) media.push(one);
    }
  }
  if (media.length === 0) return messages;
  const shown = media.map((each) => contentPart(each, dialect));
  const plain = shown.every(({ type }) => type === 'text');
  if (!plain) seen.media = true;
  return [...messages, { role: 'user', content: plain ? shown.map(({ text }) => text).join('\n\n') : shown }];
}

type ContentPart = { readonly type: string; readonly text?: string } & Readonly<Record<string, unknown>>;

function contentPart(media: Media, dialect: OpenAiDialect): ContentPart {
  if (media.kind === 'text') return { type: 'text', text: media.text };
  const sent = dialect.media ? sentMedia(media) : undefined;
  return sent ?? { type: 'text', text: unsendable(media) };
}

const AUDIO: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/wave': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
};

function sentMedia(media: Exclude<Media, { kind: 'text' }>): ContentPart | undefined {
  if (media.kind === 'url') {
    const shown = media.mimeType.startsWith('image/') && /^https?:/.test(media.url);
    return shown ? { type: 'image_url', image_url: { url: media.url } } : undefined;
  }
  const { mimeType, base64, name } = media;
  const url = `data:${mimeType};base64,${base64}`;
  if (mimeType.startsWith('image/')) return { type: 'image_url', image_url: { url } };
  if (mimeType === 'application/pdf') {
    return { type: 'file', file: { filename: name ?? 'document.pdf', file_data: url } };
  }
  const format = AUDIO[mimeType];
  return format === undefined ? undefined : { type: 'input_audio', input_audio: { data: base64, format } };
}

/** The functions as tools. */
export function openAiTools(request: ModelRequest): readonly Readonly<Record<string, unknown>>[] {
  return request.tools.map((tool) => ({
    type: 'function',
    function: { name: tool.name, description: tool.description ?? '', parameters: parametersOf(tool) },
  }));
}
