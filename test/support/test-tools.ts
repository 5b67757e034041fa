import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ToolFault, type ToolFaultType } from '../../src/session/faults.ts';
import type { PreparedCall, Tool, ToolContext, ToolEffect, ToolOutput, ToolSet } from '../../src/session/ports.ts';

// The tool set of a child under test: it is put in the place of the real one, so it bears its name.

type Args = Readonly<Record<string, string>>;
type Prepare = (args: Args, context: ToolContext) => Promise<PreparedCall>;

const tool = (name: string, effect: ToolEffect, prepare: Prepare, type?: 'mcp'): Tool => ({
  declaration: { name, description: name },
  effect,
  ...(type && { type }),
  prepare: (args, context) => prepare(args as Args, context),
});

const running = (run: () => Promise<ToolOutput>, more: Partial<PreparedCall> = {}): PreparedCall => ({ ...more, run });

/** Rejects with the signal's reason. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

const TOOLS: readonly Tool[] = [
  tool('read_file', 'read', async ({ file_path = '' }, { files, signal }) => {
    const text = await files.readText(file_path, signal);
    if (text === undefined) throw new ToolFault('file_not_found', `${file_path} is not there.`);
    return running(async () => ({ text, display: '' }));
  }),
  tool('edit', 'edit', async ({ file_path: path = '', new_string: newText = '' }, { files, signal }) => {
    const oldText = (await files.readText(path, signal)) ?? null;
    const write = async () => {
      await files.writeText(path, newText, signal);
      return {
        text: `wrote ${path}`,
        display: { fileDiff: '', fileName: basename(path), originalContent: oldText, newContent: newText },
      };
    };
    return running(write, { change: { path, oldText, newText }, always: { key: 'edit', label: 'all edits' } });
  }),
  tool('run_shell_command', 'execute', async ({ command = '', timeout }, { shell, cwd, callId, progress, signal }) => {
    const run = async () => {
      const result = await shell.run({ callId, command, cwd, timeoutMs: Number(timeout ?? 5_000) }, progress, signal);
      return { text: `${result.output}exit ${result.exitCode}${result.timedOut ? ', too late' : ''}` };
    };
    const first = command.split(' ')[0] ?? '';
    return running(run, { always: { key: `shell ${first}`, label: `${first} commands` } });
  }),
  tool('todo_write', 'note', async () =>
    running(async () => ({
      text: 'noted',
      display: { type: 'todo_list', todos: [{ id: '1', content: 'ask', status: 'in_progress' }] },
    })),
  ),
  /** Says something and hangs until it is told to stop. */
  tool('wait', 'execute', async (_, { progress, signal }) =>
    running(async () => {
      progress('half of it');
      return await untilAborted(signal);
    }),
  ),
  /** As that, and changes nothing. */
  tool('watch', 'read', async (_, { progress, signal }) =>
    running(async () => {
      progress('half of it');
      return await untilAborted(signal);
    }),
  ),
  /** Never ends. */
  tool('deaf', 'execute', async () => running(() => new Promise(() => {}))),
  tool('broken', 'read', async ({ at }) => {
    if (at === 'prepare') throw new TypeError('cannot prepare\n    at secret (/srv/secret.ts:1:1)');
    return running(() => {
      throw new TypeError('cannot run');
    });
  }),
  tool('faulty', 'execute', async ({ type }) =>
    running(async () => {
      throw new ToolFault(type as ToolFaultType, 'it failed as it may');
    }),
  ),
  tool('unsuccessful', 'read', async () => running(async () => ({ text: 'no luck', ok: false }))),
  tool('mcp__srv__peek', 'execute', async () => running(async () => ({ text: 'peeked' }), { effect: 'read' }), 'mcp'),
];

interface Options {
  readonly mcpServers: readonly { readonly name: string; readonly args?: readonly string[] }[];
}

/** A server's name says how it behaves; what becomes of it is written to the file that is its first argument. */
export async function createToolSet({ mcpServers }: Options): Promise<ToolSet> {
  const log = (what: string) => {
    for (const { name, args } of mcpServers) if (args?.[0]) appendFileSync(args[0], `${what} ${name}\n`);
  };
  const is = (name: string) => mcpServers.some((server) => server.name === name);
  log('open');
  if (is('broken')) throw new Error('no server of that kind');
  if (is('slow')) await new Promise(() => {});
  const look = tool('roots', 'read', async (_, context) =>
    running(async () => ({ text: JSON.stringify([context.roots, context.cwd]) })),
  );
  return {
    tools: [...TOOLS, look],
    async close() {
      log('close');
      if (is('deaf')) await new Promise(() => {});
    },
  };
}
