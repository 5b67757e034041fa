import { runStdioAgent } from './acp/stdio.ts';
import { type ChildOptions, parseChildArguments } from './cli/options.ts';
import { parseServeArguments } from './cli/serve-options.ts';
import { VERSION } from './cli/version.ts';

async function main(argv: readonly string[]): Promise<void> {
  const serve = parseServeArguments(argv);
  if (serve !== undefined) {
    const { runServe } = await import('./cli/serve.ts');
    return await runServe(serve, VERSION);
  }
  const options = parseChildArguments(argv) ?? (await judge(argv));
  if (options !== undefined) await runStdioAgent({ ...options, version: VERSION });
}

/** Full yargs costs more than starting Node; neither a plain child nor a plain daemon must load it. */
async function judge(argv: readonly string[]): Promise<ChildOptions | undefined> {
  const { runCommandLine } = await import('./cli/run.ts');
  return await runCommandLine(argv, VERSION);
}

void main(process.argv.slice(2));
