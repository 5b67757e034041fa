import type { Log } from '../log.ts';
import type { FileAccess, SessionRef, Toolbox, ToolSetup } from '../session/ports.ts';
import type { ClientIdentity } from './ask.ts';
import type { Connection } from './connection.ts';

export interface ToolboxDeps {
  readonly connection: Connection;
  readonly client: ClientIdentity;
  readonly log: Log;
  readonly version: string;
}

/** The tools of a session, working in the client where it offers that, else on this machine. */
export async function openToolbox(
  { connection, client, log, version }: ToolboxDeps,
  session: SessionRef,
  { mcpServers }: ToolSetup,
): Promise<Toolbox> {
  const { createToolSet } = await import('../tools/toolset.ts');
  const [set, files, shell] = await Promise.all([
    createToolSet({ cwd: session.cwd, mcpServers, log, version }),
    openFiles(session, connection, client),
    openShell(session, connection, client),
  ]);
  return { set, files, shell };
}

async function openFiles(session: SessionRef, connection: Connection, client: ClientIdentity): Promise<FileAccess> {
  const { localFiles } = await import('../tools/local-files.ts');
  const local = localFiles();
  const { readTextFile, writeTextFile } = client.capabilities.fs ?? {};
  if (!readTextFile && !writeTextFile) return local;
  const { clientFiles } = await import('./client-files.ts');
  const theirs = clientFiles(session, connection, local);
  const [reading, writing] = [readTextFile ? theirs : local, writeTextFile ? theirs : local];
  return {
    readText: (path, signal) => reading.readText(path, signal),
    writeText: (path, text, signal) => writing.writeText(path, text, signal),
  };
}

async function openShell(
  session: SessionRef,
  connection: Connection,
  client: ClientIdentity,
): Promise<Toolbox['shell']> {
  if (client.capabilities.terminal) {
    const { clientShell } = await import('./client-shell.ts');
    return (inTerminal) => clientShell(session, connection, inTerminal);
  }
  const { localShell } = await import('../tools/local-shell.ts');
  const shell = localShell();
  return () => shell;
}
