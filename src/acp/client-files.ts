import { ToolFault } from '../session/faults.ts';
import type { FileAccess, SessionRef } from '../session/ports.ts';
import type { Connection } from './connection.ts';
import { ERROR_CODE, RequestError } from './errors.ts';
import { readTextFile, writeTextFile } from './methods.ts';

/** UTF-16 units of what a client says of a file that it cannot give. */
const MAX_QUOTED = 500;

/**
 * The text files of a session as its client has them, unsaved changes included. `local` has the same files on disk: it says
 * what is no text file and what is not there, for which clients have no common word.
 */
export function clientFiles({ id: sessionId }: SessionRef, connection: Connection, local: FileAccess): FileAccess {
  return {
    async readText(path, signal) {
      try {
        return (await connection.request(readTextFile, { sessionId, path }, { signal })).content;
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        if (error.code === ERROR_CODE.resourceNotFound) return undefined;
        if ((await local.readText(path, signal)) === undefined) return undefined;
        throw refused('read', path, error);
      }
    },
    async writeText(path, text, signal) {
      try {
        await connection.request(writeTextFile, { sessionId, path, content: text }, { signal });
      } catch (error) {
        throw error instanceof RequestError ? refused('write', path, error) : error;
      }
    },
  };
}

function refused(what: 'read' | 'write', path: string, { message, code }: RequestError): ToolFault {
  const said = message.slice(0, MAX_QUOTED);
  return new ToolFault('permission_denied', `The client did not ${what} ${path}: ${said} (error ${code})`);
}
