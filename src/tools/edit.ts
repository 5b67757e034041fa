import type { Tool } from '../session/ports.ts';
import { optionalFlag, refuseArgument, textArgument } from './arguments.ts';
import { prepareChange } from './file-change.ts';
import { MAX_TEXT_BYTES } from './local-files.ts';
import { applyEdit } from './text-edit.ts';
import { placeIn } from './workspace.ts';

export const EDIT: Tool = {
  declaration: {
    name: 'edit',
    description:
      'Replace a piece of a text file. Read the file first: the text to replace must be exactly what is there, and be there ' +
      'once unless all occurrences are meant. An empty "old_string" makes a new file.',
    parametersJsonSchema: {
      type: 'object',
      properties: {
        file_path: { type: 'string', description: 'The absolute path.' },
        old_string: { type: 'string', description: 'The text to replace, with enough around it to be unique.' },
        new_string: { type: 'string', description: 'The text to put in its place.' },
        replace_all: { type: 'boolean', description: 'True to replace every occurrence.' },
      },
      required: ['file_path', 'old_string', 'new_string'],
    },
  },
  effect: 'edit',
  async prepare(args, context) {
    const filePath = textArgument(args, 'file_path');
    const edit = {
      oldString: textArgument(args, 'old_string', true),
      newString: textArgument(args, 'new_string', true),
      replaceAll: optionalFlag(args, 'replace_all'),
    };
    if (edit.newString.length > MAX_TEXT_BYTES) refuseArgument('"new_string" is too long.');
    const place = await placeIn(context, filePath);
    const oldText = await context.files.readText(place.path, context.signal);
    const { text, replacements } = applyEdit(oldText, edit, place.path, MAX_TEXT_BYTES);
    const what = replacements === 1 ? '' : `, ${replacements} times`;
    const summary = oldText === undefined ? `Made ${place.path}` : `Edited ${place.path}${what}`;
    return prepareChange({ place, oldText, newText: text, summary }, context);
  },
};
