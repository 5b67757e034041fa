import { basename } from 'node:path';
import { formatPatch, structuredPatch } from 'diff';
import { ToolFault } from '../session/faults.ts';
import type { FileChange, PreparedCall, ToolContext, ToolOutput } from '../session/ports.ts';
import { type Place, stillAt } from './workspace.ts';

/** In UTF-16 units, old and new text together: what a person is shown and a transcript keeps as a whole. */
const MAX_SHOWN = 2 * 1024 * 1024;
const MAX_PATCH = 256 * 1024;
/** Of the patch that the model sees. */
const MAX_TOLD = 4 * 1024;
/** In ms: texts that have little in common take long to compare. */
const DIFF_MS = 300;

/** A change of one file that was worked out and not made yet. */
export interface PlannedChange {
  readonly place: Place;
  readonly oldText: string | undefined;
  readonly newText: string;
  /** For the model, without a full stop. */
  readonly summary: string;
}

/** Makes the change when it is run, unless the file has become another meanwhile: what the person allowed is what happens. */
export function prepareChange(planned: PlannedChange, context: ToolContext): PreparedCall {
  const { place, oldText, newText } = planned;
  const change: FileChange = { path: place.path, oldText: oldText ?? null, newText };
  const isShown = (oldText?.length ?? 0) + newText.length <= MAX_SHOWN;
  return {
    ...(isShown && { change }),
    ...(isRunLater(place)
      ? { effect: 'execute' }
      : { always: { key: 'edit files', label: 'changes of files in the workspace' } }),
    async run() {
      const { files, signal } = context;
      await stillAt(context, place);
      if ((await files.readText(place.path, signal)) !== oldText) {
        throw new ToolFault('file_changed', `${place.path} was changed meanwhile, nothing was written. Read it again.`);
      }
      // The read may have taken long.
      await stillAt(context, place);
      await files.writeText(place.path, newText, signal);
      return outputOf(planned, isShown);
    },
  };
}

/** What git or an agent starts by itself: who writes there runs something. A link may have these names, or lead to them. */
function isRunLater({ path, real }: Place): boolean {
  return `${path}/${real}`
    .toLowerCase()
    .split(/[\\/]/)
    .some((part) => part === '.git' || part === '.qwen');
}

/** In the reference's shape; without the texts where they are too long to be kept. */
function outputOf({ place, oldText, newText, summary }: PlannedChange, isShown: boolean): ToolOutput {
  const name = basename(place.path);
  const patch = structuredPatch(name, name, withLf(oldText ?? ''), withLf(newText), 'Current', 'Proposed', {
    context: 3,
    timeout: DIFF_MS,
  });
  const fileDiff = patch === undefined ? '' : formatPatch(patch);
  const lines = patch?.hunks.flatMap((hunk) => hunk.lines) ?? [];
  const told = fileDiff.slice(fileDiff.indexOf('@@'));
  return {
    text: fileDiff === '' ? `${summary}.` : `${summary}:\n${cut(told, MAX_TOLD)}`,
    display: {
      fileDiff: cut(fileDiff, MAX_PATCH),
      fileName: name,
      filePath: place.path,
      ...(isShown && { originalContent: oldText ?? null, newContent: newText }),
      diffStat: {
        model_added_lines: lines.filter((line) => line.startsWith('+')).length,
        model_removed_lines: lines.filter((line) => line.startsWith('-')).length,
        model_added_chars: charsOf(lines, '+'),
        model_removed_chars: charsOf(lines, '-'),
        user_added_lines: 0,
        user_removed_lines: 0,
        user_added_chars: 0,
        user_removed_chars: 0,
      },
    },
  };
}

const withLf = (text: string): string => text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');

function charsOf(lines: readonly string[], sign: string): number {
  return lines.reduce((sum, line) => (line.startsWith(sign) ? sum + line.length - 1 : sum), 0);
}

const cut = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length)}\n…`);
