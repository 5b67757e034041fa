#!/usr/bin/env node
import { parseChildArguments } from './cli/options.ts';
import { VERSION } from './cli/version.ts';

const argv = process.argv.slice(2);
const options = parseChildArguments(argv);
if (options !== undefined) {
  // Full yargs costs more than starting Node; the child must not load it.
  const { runStdioAgent } = await import('./acp/stdio.ts');
  await runStdioAgent({ ...options, version: VERSION });
} else {
  const { runCommandLine } = await import('./cli/run.ts');
  await runCommandLine(argv, VERSION);
}
