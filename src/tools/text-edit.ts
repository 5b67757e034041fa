import { ToolFault } from '../session/faults.ts';

export interface TextEdit {
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll: boolean;
}

export interface EditedText {
  readonly text: string;
  readonly replacements: number;
}

/**
 * A file's text with every occurrence of one string replaced, of which there must be exactly one unless all are meant.
 * `current` is undefined for a file that does not exist; then, and for an empty one, an empty `oldString` gives it its
 * first text. Line ends: LF in the edit stands for what the file has. Throws `ToolFault`. Pure.
 */
export function applyEdit(current: string | undefined, edit: TextEdit, path: string, maxLength: number): EditedText {
  const { oldString, newString, replaceAll } = edit;
  if (oldString === newString) {
    throw new ToolFault(
      'edit_no_change',
      `"old_string" and "new_string" are the same, nothing was changed in ${path}.`,
    );
  }
  if (oldString === '') return { text: firstText(current, newString, path), replacements: 1 };
  if (current === undefined) {
    const hint = 'To make a new one, leave "old_string" empty.';
    throw new ToolFault('file_not_found', `There is no file ${path}. ${hint}`);
  }
  const [wanted, replacement] = inLineEndsOf(current, oldString, newString);
  const replacements = count(current, wanted);
  if (replacements === 0) {
    const hint = 'It must be exactly what the file has, spaces and line breaks included; read the file again.';
    throw new ToolFault('edit_no_occurrence_found', `"old_string" is not in ${path}. ${hint}`);
  }
  if (replacements > 1 && !replaceAll) {
    const hint = 'Give more of the text around it, or set "replace_all".';
    throw new ToolFault(
      'edit_expected_occurrence_mismatch',
      `"old_string" is ${replacements} times in ${path}. ${hint}`,
    );
  }
  if (current.length + replacements * (replacement.length - wanted.length) > maxLength) {
    throw new ToolFault('file_too_large', `${path} would become too large.`);
  }
  const text = current.split(wanted).join(replacement);
  if (text === current) throw new ToolFault('edit_no_change', `The edit changes nothing in ${path}.`);
  return { text, replacements };
}

/** A whole new text in the form of the one that it replaces: its byte order mark, and CRLF where it has nothing else. */
export function inFormOf(current: string | undefined, text: string): string {
  if (current === undefined) return text;
  const lined = hasOnlyCrlf(current) ? toCrlf(text) : text;
  return current.startsWith('\uFEFF') && !lined.startsWith('\uFEFF') ? `\uFEFF${lined}` : lined;
}

function firstText(current: string | undefined, text: string, path: string): string {
  if (current === undefined || current === '' || current === '\uFEFF') return (current ?? '') + text;
  throw new ToolFault(
    'attempt_to_create_existing_file',
    `${path} exists already and is not empty. Give the "old_string" to replace, or use write_file.`,
  );
}

/** The strings with the file's line ends: models see and write LF. */
function inLineEndsOf(current: string, wanted: string, replacement: string): readonly [string, string] {
  if (!current.includes('\r\n')) return [wanted, replacement];
  if (hasOnlyCrlf(current)) return [toCrlf(wanted), toCrlf(replacement)];
  // Both kinds: as the place has it.
  if (current.includes(wanted)) return [wanted, wanted.includes('\r\n') ? toCrlf(replacement) : replacement];
  return [toCrlf(wanted), toCrlf(replacement)];
}

function hasOnlyCrlf(text: string): boolean {
  return text.includes('\r\n') && !/(^|[^\r])\n/.test(text);
}

const toCrlf = (text: string): string => text.replace(/\r?\n/g, '\r\n');

function count(text: string, wanted: string): number {
  let found = 0;
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length)) found += 1;
  return found;
}
