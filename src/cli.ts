#!/usr/bin/env node
import { runStdioAgent } from './acp/stdio.ts';
import { parseChildArguments } from './cli/options.ts';
import { VERSION } from './cli/version.ts';

async function main(argv: readonly string[]): Promise<void> {
  const options = parseChildArguments(argv);
  if (options !== undefined) return await runStdioAgent({ ...options, version: VERSION });
  // Full yargs costs more than starting Node; the child must not load it.
  const { runCommandLine } = await import('./cli/run.ts');
  await runCommandLine(argv, VERSION);
}

void main(process.argv.slice(2));
