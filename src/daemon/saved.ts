import type { ListSessionsResponse } from '@agentclientprotocol/sdk';
import type { Connection } from '../acp/connection.ts';
import * as methods from '../acp/methods.ts';
import { listRequestMeta } from '../meta/daemon.ts';

/** Pages that are asked for at most; a child could give them without end. */
const MAX_PAGES = 100;
/** For each page, in milliseconds. */
const DEADLINE_MS = 10_000;

/** All sessions that the child has saved for a folder. Rejects as `Connection.request` does. */
export async function savedSessions(connection: Connection, cwd: string): Promise<ListSessionsResponse['sessions']> {
  const sessions: ListSessionsResponse['sessions'] = [];
  let cursor: string | null | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = { cwd, ...(cursor && { cursor }), _meta: listRequestMeta() };
    const answer = await connection.request(methods.listSessions, params, { deadlineMs: DEADLINE_MS });
    sessions.push(...answer.sessions);
    if (!answer.nextCursor || answer.nextCursor === cursor) break;
    cursor = answer.nextCursor;
  }
  return sessions;
}
