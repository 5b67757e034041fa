import type { Tool } from '../session/ports.ts';
import { refuseArgument, textArgument } from './arguments.ts';
import { prepareChange } from './file-change.ts';
import { MAX_TEXT_BYTES } from './local-files.ts';
import { inFormOf } from './text-edit.ts';
import { placeIn } from './workspace.ts';

export const WRITE_FILE: Tool = {
  declaration: {
    name: 'write_file',
    description: 'Write a text file as a whole; what it had before is gone. Folders that are missing are made.',
    parametersJsonSchema: {
      type: 'object',
      properties: {
        file_path: { type: 'string', description: 'The absolute path.' },
        content: { type: 'string', description: 'The whole text.' },
      },
      required: ['file_path', 'content'],
    },
  },
  effect: 'edit',
  async prepare(args, context) {
    const filePath = textArgument(args, 'file_path');
    const content = textArgument(args, 'content', true);
    if (content.length > MAX_TEXT_BYTES) refuseArgument('"content" is too long.');
    const place = await placeIn(context, filePath);
    const oldText = await context.files.readText(place.path, context.signal);
    const summary = `${oldText === undefined ? 'Made' : 'Wrote'} ${place.path}`;
    return prepareChange({ place, oldText, newText: inFormOf(oldText, content), summary }, context);
  },
};
