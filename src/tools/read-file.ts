import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { isMissing } from '../error-code.ts';
import { ToolFault } from '../session/faults.ts';
import type { Tool, ToolContext, ToolOutput } from '../session/ports.ts';
import { optionalInteger, textArgument } from './arguments.ts';
import { faultOf, requireFile } from './file-faults.ts';
import { LineWindow } from './line-window.ts';
import { MAX_TEXT_BYTES, openFile } from './local-files.ts';
import { placeIn } from './workspace.ts';

const DEFAULT_LINES = 1000;
const MAX_LINES = 10_000;
const CHUNK_BYTES = 256 * 1024;

export const READ_FILE: Tool = {
  declaration: {
    name: 'read_file',
    description:
      'Read a text file, or some of its lines. What is too long is cut, and the answer says how to go on reading. Binary ' +
      'files, images and PDFs cannot be read.',
    parametersJsonSchema: {
      type: 'object',
      properties: {
        file_path: { type: 'string', description: 'The absolute path.' },
        offset: { type: ['integer', 'null'], description: 'How many lines to pass over first.' },
        limit: { type: ['integer', 'null'], description: `How many lines to read; ${DEFAULT_LINES} when left out.` },
      },
      required: ['file_path'],
    },
  },
  effect: 'read',
  async prepare(args, context) {
    const filePath = textArgument(args, 'file_path');
    const offset = optionalInteger(args, 'offset', 0, Number.MAX_SAFE_INTEGER) ?? 0;
    const limit = optionalInteger(args, 'limit', 1, MAX_LINES) ?? DEFAULT_LINES;
    await placeIn(context, filePath);
    return {
      async run() {
        const { path } = await placeIn(context, filePath);
        const window = new LineWindow(offset, limit);
        const wasReadToEnd = await fill(window, path, context);
        return outputOf(window, { name: basename(path), offset, wasReadToEnd });
      },
    };
  },
};

/** Whether it came to the file's end. */
async function fill(window: LineWindow, path: string, { files, signal }: ToolContext): Promise<boolean> {
  const bytes = await sizeOf(path);
  // What is too large to be open in an editor is read from the disk, as far as it is wanted.
  if (bytes !== undefined && bytes > MAX_TEXT_BYTES) return stream(window, path, signal);
  const text = await files.readText(path, signal);
  if (text === undefined) throw new ToolFault('file_not_found', `There is no file ${path}.`);
  window.push(withoutMark(text));
  window.end();
  return true;
}

/** Undefined for what is not on the disk: it may be new in the person's editor. Throws `ToolFault` for what is no file. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const stats = await stat(path);
    requireFile(stats, path);
    return stats.size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw faultOf(error, path);
  }
}

async function stream(window: LineWindow, path: string, signal: AbortSignal): Promise<boolean> {
  const { handle } = await openFile(path).catch((error) => {
    throw faultOf(error, path);
  });
  try {
    const decoder = new StringDecoder('utf8');
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (let position = 0; !window.isFull; ) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
      signal.throwIfAborted();
      if (bytesRead === 0) {
        window.push(decoder.end());
        window.end();
        return true;
      }
      const bytes = buffer.subarray(0, bytesRead);
      if (bytes.includes(0)) throw new ToolFault('binary_file', `${path} is a binary file, not text.`);
      const text = decoder.write(bytes);
      window.push(position === 0 ? withoutMark(text) : text);
      position += bytesRead;
    }
    return false;
  } finally {
    await handle.close();
  }
}

const withoutMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);

interface Reading {
  readonly name: string;
  readonly offset: number;
  readonly wasReadToEnd: boolean;
}

function outputOf(window: LineWindow, { name, offset, wasReadToEnd }: Reading): ToolOutput {
  const { lines, count, cutLines } = window;
  const total = wasReadToEnd ? String(count) : 'many';
  if (lines.length === 0) {
    const text =
      count === 0 ? 'The file is empty.' : `The file has ${count} lines; there is nothing after line ${offset}.`;
    return { text, display: text };
  }
  const last = offset + lines.length;
  const isWhole = wasReadToEnd && offset === 0 && last === count;
  if (isWhole && cutLines === 0) return { text: lines.join('\n'), display: '' };
  const more = !wasReadToEnd || last < count ? ` To go on, read with offset ${last}.` : '';
  const cut = cutLines === 0 ? '' : ` ${cutLines} long ${cutLines === 1 ? 'line is' : 'lines are'} cut.`;
  return {
    text: [`[Lines ${offset + 1} to ${last} of ${total}.${more}${cut}]`, ...lines].join('\n'),
    display: `Read lines ${offset + 1} to ${last} of ${total} of ${name}`,
  };
}
