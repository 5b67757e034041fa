import { runStdioAgent } from './acp/stdio.ts';
import { type ChildOptions, parseChildArguments } from './cli/options.ts';
import { VERSION } from './cli/version.ts';

async function main(argv: readonly string[]): Promise<void> {
  const options = parseChildArguments(argv) ?? (await judge(argv));
  if (options !== undefined) await runStdioAgent({ ...options, version: VERSION });
}

/** Full yargs costs more than starting Node; a plain child must not load it. */
async function judge(argv: readonly string[]): Promise<ChildOptions | undefined> {
  const { runCommandLine } = await import('./cli/run.ts');
  return await runCommandLine(argv, VERSION);
}

void main(process.argv.slice(2));
