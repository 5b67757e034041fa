import type { Stats } from 'node:fs';
import { ToolFault } from '../session/faults.ts';

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Nothing of that name; a file where a folder of the path should be counts too. */
export function isMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** What a file call's error means to a tool; anything that is no file call's error stays what it is. */
export function faultOf(error: unknown, path: string): unknown {
  switch (codeOf(error)) {
    case undefined:
      return error;
    case 'ENOENT':
    case 'ENOTDIR':
      return new ToolFault('file_not_found', `There is no ${path}.`);
    case 'EISDIR':
      return new ToolFault('target_is_directory', `${path} is a folder, not a file.`);
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ToolFault('permission_denied', `The system does not allow it: ${path}.`);
    case 'ENAMETOOLONG':
      return new ToolFault('invalid_tool_params', 'The path is too long for this system.');
    case 'ELOOP':
      return new ToolFault('execution_failed', `The links of ${path} lead in a circle.`);
    case 'ENOSPC':
    case 'EDQUOT':
      return new ToolFault('execution_failed', `There is no space left for ${path}.`);
    default:
      return new ToolFault('execution_failed', `${path}: ${codeOf(error)}`);
  }
}

/** Throws `ToolFault` unless it is a regular file: reading another kind may block for ever or do something. */
export function requireFile(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new ToolFault('target_is_directory', `${path} is a folder, not a file.`);
  const kind = stats.isFIFO() ? 'a named pipe' : stats.isSocket() ? 'a socket' : 'a device';
  throw new ToolFault('execution_failed', `${path} is ${kind}, not a file.`);
}
