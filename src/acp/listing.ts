import type { ListSessionsRequest, ListSessionsResponse } from '@agentclientprotocol/sdk';
import { readListMeta } from '../meta/meta.ts';
import type { ListPosition } from '../session/files.ts';
import type { Sessions } from '../session/sessions.ts';
import { RequestError } from './errors.ts';

const PAGE = 50;
const LONGEST_PAGE = 100;

/** One page of the saved sessions. Throws `RequestError` -32602 for a cursor that is not ours. */
export async function sessionPage(
  sessions: Sessions,
  { cwd, cursor, _meta }: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const limit = Math.min(readListMeta(_meta).size ?? PAGE, LONGEST_PAGE);
  const after = cursor ? positionOf(cursor) : undefined;
  const page = await sessions.list({ cwd: cwd ?? undefined, after, limit });
  return {
    sessions: page.sessions.map(({ sessionId, cwd, title, updatedAt }) => ({
      sessionId,
      cwd,
      ...(title !== undefined && { title }),
      updatedAt,
    })),
    ...(page.next && { nextCursor: cursorOf(page.next) }),
  };
}

function cursorOf({ time, key }: ListPosition): string {
  return Buffer.from(JSON.stringify([time, key])).toString('base64url');
}

function positionOf(cursor: string): ListPosition {
  try {
    const [time, key]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (typeof time === 'number' && typeof key === 'string') return { time, key };
  } catch {
    // Told below, as anything else that no page ever gave.
  }
  throw RequestError.invalidParams([{ path: '/cursor', message: 'is no cursor that a page of this list gave' }]);
}
