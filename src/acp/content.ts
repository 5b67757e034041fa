import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { Part } from '@google/genai';

/** A prompt's content blocks as parts of a user message; blank text blocks carry nothing and are left out. */
export function promptParts(blocks: readonly ContentBlock[]): readonly Part[] {
  return blocks.map(partOf).filter((part) => part.text !== '');
}

function partOf(block: ContentBlock): Part {
  switch (block.type) {
    case 'text':
      return { text: block.text };
    case 'image':
    case 'audio':
      return { inlineData: { mimeType: block.mimeType, data: block.data } };
    case 'resource_link':
      return { text: `@${block.uri}` };
    case 'resource':
      return resourcePart(block.resource);
  }
}

function resourcePart(resource: Extract<ContentBlock, { type: 'resource' }>['resource']): Part {
  if ('text' in resource) return { text: `Content of ${resource.uri}:\n${resource.text}` };
  return { inlineData: { mimeType: resource.mimeType ?? 'application/octet-stream', data: resource.blob } };
}
