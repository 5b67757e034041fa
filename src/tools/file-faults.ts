import type { Stats } from 'node:fs';
import { errorCode } from '../error-code.ts';
import { ToolFault } from '../session/faults.ts';

/** What a file call's error means to a tool; anything that is no file call's error stays what it is. */
export function faultOf(error: unknown, path: string): unknown {
  switch (errorCode(error)) {
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
      return new ToolFault('execution_failed', `${path}: ${errorCode(error)}`);
  }
}

/** Throws `ToolFault` unless it is a regular file: reading another kind may block for ever or do something. */
export function requireFile(stats: Stats, path: string): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new ToolFault('target_is_directory', `${path} is a folder, not a file.`);
  const kind = stats.isFIFO() ? 'a named pipe' : stats.isSocket() ? 'a socket' : 'a device';
  throw new ToolFault('execution_failed', `${path} is ${kind}, not a file.`);
}
