import { parseCommandLine } from './full.ts';

/** Does what a command line other than the plain child's asks for; sets the exit code. */
export async function runCommandLine(argv: readonly string[], version: string): Promise<void> {
  const asked = await parseCommandLine(argv, version);
  switch (asked.kind) {
    case 'child': {
      const { runStdioAgent } = await import('../acp/stdio.ts');
      await runStdioAgent({ ...asked.options, version });
      return;
    }
    case 'serve':
      process.stderr.write('qwen-acp serve is not part of this version yet; it comes with a later one.\n');
      process.exitCode = 1;
      return;
    case 'text':
      if (asked.note !== undefined) process.stderr.write(`${asked.note}\n`);
      process.stdout.write(`${asked.text}\n`);
      return;
    case 'fault':
      process.stderr.write(`${asked.text}\n`);
      process.exitCode = 1;
  }
}
