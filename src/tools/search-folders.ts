import { stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import type { ToolContext } from '../session/ports.ts';
import { faultOf } from './file-faults.ts';
import { isWithin, placeIn, realPlace } from './workspace.ts';

export interface Start {
  readonly path: string;
  readonly isFolder: boolean;
}

/** Where a search begins: at the path that was named, else in every folder of the workspace. Throws `ToolFault`. */
export async function searchStarts(context: ToolContext, path: string | undefined): Promise<readonly Start[]> {
  if (path !== undefined) return [await startAt((await placeIn(context, path)).path)];
  const starts: Start[] = [];
  const covered: string[] = [];
  for (const folder of [context.cwd, ...context.roots]) {
    const real = await realPlace(folder);
    if (covered.some((other) => isWithin(other, real))) continue;
    covered.push(real);
    // A client may name a folder that is not there any more.
    const start = await startAt(folder).catch(() => undefined);
    if (start !== undefined) starts.push(start);
  }
  return starts;
}

async function startAt(path: string): Promise<Start> {
  try {
    return { path, isFolder: (await stat(path)).isDirectory() };
  } catch (error) {
    throw faultOf(error, path);
  }
}

/** With `/` between its parts, on every system. */
export const slashed = (from: string, to: string): string => relative(from, to).split(sep).join('/');
