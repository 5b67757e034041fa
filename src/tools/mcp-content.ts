import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import type { ToolOutput } from '../session/ports.ts';
import { printable } from './mcp-names.ts';

/** Of one result, in characters, as the model gets it. */
const MAX_TEXT = 100_000;

/** What a server answered, as text: a model's function response holds nothing else. What is no text is named. */
export function toolOutput(result: CallToolResult): ToolOutput {
  const blocks = result.content.map(describeBlock).filter((text) => text !== '');
  // Servers repeat structured content as text for clients of old; it counts where they do not.
  if (blocks.length === 0 && result.structuredContent !== undefined) {
    blocks.push(JSON.stringify(result.structuredContent));
  }
  const text = bounded(blocks.join('\n')) || '(The tool answered without any content.)';
  return { text, display: text, ...(result.isError === true && { ok: false }) };
}

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type}, ${kindAndSize(block.mimeType, block.data)}: not shown]`;
    case 'resource_link':
      return `[resource ${printable(block.title ?? block.name, 200)}: ${printable(block.uri, 2000)}]`;
    case 'resource':
      if ('text' in block.resource) return block.resource.text;
      return `[resource ${printable(block.resource.uri, 2000)}, ${kindAndSize(block.resource.mimeType, block.resource.blob)}: not shown]`;
    default:
      return `[content of an unknown kind: not shown]`;
  }
}

function kindAndSize(mimeType: string | undefined, base64: string): string {
  return `${printable(mimeType ?? 'application/octet-stream', 100)}, about ${Math.ceil((base64.length * 3) / 4096)} KiB`;
}

function bounded(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  return `${text.slice(0, MAX_TEXT)}\n[${text.length - MAX_TEXT} more characters were left out]`;
}
