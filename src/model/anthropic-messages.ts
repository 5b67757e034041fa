import type { Content, Part } from '@google/genai';
import type { ModelRequest } from '../session/ports.ts';
import { CallIds, type IdRule } from './call-ids.ts';
import { parametersOf } from './json-schema.ts';
import { type Media, mediaOf, resultOf, unsendable } from './media.ts';
import { isDataOnly, isForeign, providerDataOf } from './provider-data.ts';

export type Block = { readonly type: string } & Readonly<Record<string, unknown>>;

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly content: Block[];
}

export interface AnthropicDialect {
  /** Which thoughts go back: none, those with a signature, or all, for servers that sign none. */
  readonly thoughts: 'none' | 'signed' | 'all';
  readonly media: boolean;
}

/** What a conversation has that a server may refuse. */
export interface Converted {
  readonly messages: readonly AnthropicMessage[];
  readonly hasThoughts: boolean;
  readonly hasMedia: boolean;
}

const IDS: IdRule = { allowed: /^[a-zA-Z0-9_-]+$/, maxLength: 64, unique: true };

/** The conversation as messages that alternate and begin with the person's; results stand first in theirs. */
export function anthropicMessages(contents: readonly Content[], dialect: AnthropicDialect): Converted {
  const ids = new CallIds(IDS);
  const messages: AnthropicMessage[] = [];
  const add = (role: AnthropicMessage['role'], blocks: readonly Block[]) => {
    if (blocks.length === 0) return;
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else messages.push({ role, content: [...blocks] });
  };
  for (const content of contents) {
    if (content.role === 'model') add('assistant', assistantBlocks(content, ids, dialect));
    else add('user', userBlocks(content, ids, dialect));
  }
  if (messages[0]?.role === 'assistant')
    messages.unshift({ role: 'user', content: [{ type: 'text', text: 'Go on.' }] });
  const blocks = messages.flatMap(({ content }) => content);
  return {
    messages,
    hasThoughts: blocks.some(isThinking),
    hasMedia: blocks.some((block) => hasMedia(block)),
  };
}

const isThinking = ({ type }: Block): boolean => type === 'thinking' || type === 'redacted_thinking';

function hasMedia({ type, content }: Block): boolean {
  if (type === 'image' || type === 'document') return true;
  return Array.isArray(content) && content.some(hasMedia);
}

function assistantBlocks(content: Content, ids: CallIds, dialect: AnthropicDialect): Block[] {
  const names = [...ids.ofCalls(content)];
  const blocks = (content.parts ?? []).flatMap((part): Block[] => {
    if (part.thought || isDataOnly(part)) return thoughtBlocks(part, dialect);
    const { functionCall, text } = part;
    if (functionCall) {
      const { name = '', args = {} } = functionCall;
      const fields = providerDataOf(part, 'anthropic')?.fields;
      return [{ ...fields, type: 'tool_use', id: names.shift() ?? '', name, input: args }];
    }
    return textBlocks(text);
  });
  // A turn that was stopped while the model thought said nothing.
  return blocks.every(isThinking) ? [] : blocks;
}

function thoughtBlocks(part: Part, { thoughts }: AnthropicDialect): Block[] {
  if (thoughts === 'none' || isForeign(part, 'anthropic')) return [];
  const block = providerDataOf(part, 'anthropic')?.block;
  if (block !== undefined) return [block as Block];
  const { text: thinking = '', thoughtSignature: signature } = part;
  if (isDataOnly(part) || (signature === undefined && (thoughts === 'signed' || thinking === ''))) return [];
  return [{ type: 'thinking', thinking, signature: signature ?? '' }];
}

/** The API refuses text that is empty or blank. */
function textBlocks(text: string | undefined): Block[] {
  return text === undefined || text.trim() === '' ? [] : [{ type: 'text', text }];
}

function userBlocks(content: Content, ids: CallIds, dialect: AnthropicDialect): Block[] {
  const results: Block[] = [];
  const said: Block[] = [];
  for (const part of content.parts ?? []) {
    if (part.functionResponse) results.push(resultBlock(part.functionResponse, ids, dialect));
    else said.push(...mediaBlocks(mediaOf(part), dialect));
  }
  return [...results, ...said];
}

function resultBlock(response: NonNullable<Part['functionResponse']>, ids: CallIds, dialect: AnthropicDialect): Block {
  const { text, failed, shown } = resultOf(response);
  const media = shown.flatMap((part) => mediaBlocks(mediaOf(part), dialect));
  return {
    type: 'tool_result',
    tool_use_id: ids.ofResponse(response.id),
    content: media.length > 0 ? [...textBlocks(text), ...media] : text,
    ...(failed && { is_error: true }),
  };
}

function mediaBlocks(media: Media | undefined, dialect: AnthropicDialect): Block[] {
  if (media === undefined) return [];
  if (media.kind === 'text') return textBlocks(media.text);
  const block = dialect.media ? sentMedia(media) : undefined;
  return [block ?? { type: 'text', text: unsendable(media) }];
}

const IMAGES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

function sentMedia(media: Exclude<Media, { kind: 'text' }>): Block | undefined {
  const isImage = IMAGES.has(media.mimeType);
  if (!isImage && media.mimeType !== 'application/pdf') return undefined;
  const type = isImage ? 'image' : 'document';
  if (media.kind === 'url') {
    return media.url.startsWith('https:') ? { type, source: { type: 'url', url: media.url } } : undefined;
  }
  return { type, source: { type: 'base64', media_type: media.mimeType, data: media.base64 } };
}

/**
 * Whether the model may be asked to think with a budget: the API then wants every model turn of the running tool loop to
 * begin with a thought of its own, which a turn that another model made, or that was made without, does not.
 */
export function loopHasThoughts(messages: readonly AnthropicMessage[]): boolean {
  for (const { role, content } of messages.toReversed()) {
    if (role === 'user' && content.every(({ type }) => type !== 'tool_result')) return true;
    if (role === 'assistant' && !isThinking(content[0] ?? { type: '' })) return false;
  }
  return true;
}

/** The functions as tools. */
export function anthropicTools(request: ModelRequest): readonly Block[] {
  return request.tools.map((tool) => ({
    type: 'custom',
    name: tool.name,
    description: tool.description ?? '',
    input_schema: parametersOf(tool),
  }));
}

/** Marks where the next request will be the same up to: the last block that can bear the mark. */
export function withCacheMark<T extends Block>(blocks: readonly T[]): readonly T[] {
  const at = blocks.findLastIndex((block) => !isThinking(block));
  return blocks.map((block, index) => (index === at ? { ...block, cache_control: { type: 'ephemeral' } } : block));
}
