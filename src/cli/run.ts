import { parseCommandLine } from './full.ts';
import type { ChildOptions } from './options.ts';

/**
 * Does what a command line asks for other than the child, and sets the exit code; gives the child's options where it
 * asks for that after all.
 */
export async function runCommandLine(argv: readonly string[], version: string): Promise<ChildOptions | undefined> {
  const asked = await parseCommandLine(argv, version);
  switch (asked.kind) {
    case 'child':
      return asked.options;
    case 'serve': {
      const { runServe } = await import('./serve.ts');
      await runServe(asked.options, version);
      return undefined;
    }
    case 'explain': {
      const { runExplain } = await import('./explain.ts');
      await runExplain(asked.options);
      return undefined;
    }
    case 'conformance': {
      const { runKit } = await import('../conformance/kit.ts');
      process.exitCode = await runKit(asked.options, (text) => process.stdout.write(`${text}\n`));
      return undefined;
    }
    case 'text':
      if (asked.note !== undefined) process.stderr.write(`${asked.note}\n`);
      process.stdout.write(`${asked.text}\n`);
      return undefined;
    case 'fault':
      process.stderr.write(`${asked.text}\n`);
      process.exitCode = asked.exitCode ?? 1;
      return undefined;
  }
}
