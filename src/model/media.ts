import type { Part } from '@google/genai';

/** A part that is no text, as a provider can be given it; `text` for what it cannot. */
export type Media =
  | { readonly kind: 'inline'; readonly mimeType: string; readonly base64: string; readonly name?: string }
  | { readonly kind: 'url'; readonly mimeType: string; readonly url: string }
  | { readonly kind: 'text'; readonly text: string };

/** What a user's part carries; undefined for one that carries nothing that a model can be shown. */
export function mediaOf(part: Part): Media | undefined {
  if (part.text !== undefined) return part.text === '' ? undefined : { kind: 'text', text: part.text };
  const { inlineData, fileData } = part;
  if (inlineData?.data) {
    const mimeType = inlineData.mimeType ?? 'application/octet-stream';
    if (mimeType.startsWith('text/')) {
      return { kind: 'text', text: Buffer.from(inlineData.data, 'base64').toString('utf8') };
    }
    const name = inlineData.displayName;
    return { kind: 'inline', mimeType, base64: inlineData.data, ...(name !== undefined && { name }) };
  }
  if (fileData?.fileUri) return { kind: 'url', mimeType: fileData.mimeType ?? '', url: fileData.fileUri };
  return undefined;
}

/** What a model is told in the place of media that it cannot be sent. */
export function unsendable(media: Exclude<Media, { kind: 'text' }>): string {
  if (media.kind === 'url') return `[An attachment, not shown to you: ${media.url}]`;
  const name = media.name === undefined ? '' : ` "${media.name}"`;
  return `[An attachment${name} of type ${media.mimeType}, which you cannot be shown.]`;
}

/** A tool's result as text, and what it shows beside it. */
export function resultOf({ response, parts }: NonNullable<Part['functionResponse']>): {
  readonly text: string;
  readonly failed: boolean;
  readonly shown: readonly Part[];
} {
  const { output, error } = response ?? {};
  const value = output ?? error ?? response ?? '';
  return {
    text: typeof value === 'string' ? value : JSON.stringify(value),
    failed: output === undefined && error !== undefined,
    shown: (parts ?? []) as readonly Part[],
  };
}
