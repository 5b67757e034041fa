import { lstatSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { explain } from '../session/explain.ts';
import { SessionFault } from '../session/faults.ts';
import { allChatsDirs } from '../session/files.ts';
import { isStoredSessionId } from '../session/ids.ts';
import { inspectTranscript } from '../session/inspect.ts';
import { chatPath, runtimeDir } from '../session/paths.ts';
import type { ExplainArguments } from './explain-options.ts';
import { explanationText } from './explain-text.ts';

/** Prints what a load would make of a session, restorable or not; what cannot be read goes to stderr, with exit code 1. */
export async function runExplain(args: ExplainArguments): Promise<void> {
  try {
    const explanation = explain(await inspectTranscript(transcriptPath(args)));
    process.stdout.write(args.json ? `${JSON.stringify(explanation, undefined, 2)}\n` : explanationText(explanation));
  } catch (error) {
    if (!(error instanceof SessionFault)) throw error;
    process.stderr.write(`qwen-acp explain: ${error.message}\n`);
    process.exitCode = 1;
  }
}

/** Where a session is: in the folder's transcripts, else in the only other folder that has it. Throws `SessionFault`. */
function transcriptPath({ session, cwd }: ExplainArguments): string {
  const id = session.toLowerCase();
  if (!isStoredSessionId(id)) return resolve(session);
  const here = chatPath(resolve(cwd ?? '.'), id);
  if (isThere(here)) return here;
  const paths = allChatsDirs(runtimeDir()).map((folder) => join(folder, `${id}.jsonl`));
  const [found, ...others] = paths.filter(isThere);
  if (found === undefined) throw new SessionFault('unknown_session', `There is no session ${id}.`);
  if (others.length === 0) return found;
  const all = [found, ...others].join('\n  ');
  throw new SessionFault('invalid_params', `Several folders have a session ${id}; name one of the files:\n  ${all}`);
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
