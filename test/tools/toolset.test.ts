import { expect, test } from 'vitest';
import { createLog } from '../../src/log.ts';
import { createToolSet } from '../../src/tools/toolset.ts';
import { tempFolder } from '../support/temp.ts';

/** As qwen-code 0.24.4 offers them: names, parameters (those that are there must mean the same) and which are required. */
const REFERENCE: Record<string, { effect: string; parameters: Record<string, unknown>; required: string[] }> = {
  read_file: {
    effect: 'read',
    parameters: { file_path: 'string', offset: ['integer', 'null'], limit: ['integer', 'null'] },
    required: ['file_path'],
  },
  list_directory: {
    effect: 'read',
    parameters: { path: 'string', ignore: 'array', file_filtering_options: 'object' },
    required: ['path'],
  },
  glob: { effect: 'read', parameters: { pattern: 'string', path: 'string' }, required: ['pattern'] },
  grep_search: {
    effect: 'read',
    parameters: { pattern: 'string', glob: 'string', path: 'string', limit: 'integer' },
    required: ['pattern'],
  },
  edit: {
    effect: 'edit',
    parameters: { file_path: 'string', old_string: 'string', new_string: 'string', replace_all: 'boolean' },
    required: ['file_path', 'old_string', 'new_string'],
  },
  write_file: {
    effect: 'edit',
    parameters: { file_path: 'string', content: 'string' },
    required: ['file_path', 'content'],
  },
  run_shell_command: {
    effect: 'execute',
    parameters: {
      command: 'string',
      is_background: 'boolean',
      timeout: 'integer',
      description: 'string',
      directory: 'string',
    },
    required: ['command'],
  },
  todo_write: { effect: 'note', parameters: { todos: 'array' }, required: ['todos'] },
};

test('[TL-1] a session has the eight tools, with the reference’s names and parameters', async () => {
  const lines: string[] = [];
  const log = createLog('warn', (line) => void lines.push(line));
  const set = await createToolSet({ cwd: tempFolder(), mcpServers: [], log, version: '1.2.3' });
  const offered = set.tools.map(({ declaration, effect }) => {
    const { properties, required } = declaration.parametersJsonSchema as {
      properties: Record<string, { type: unknown }>;
      required: string[];
    };
    const parameters = Object.fromEntries(Object.entries(properties).map(([name, { type }]) => [name, type]));
    expect(declaration.description?.length).toBeGreaterThan(40);
    return [declaration.name, { effect, parameters, required }];
  });
  expect(Object.fromEntries(offered)).toEqual(REFERENCE);
  // What a model is sent must be plain JSON.
  for (const { declaration } of set.tools) expect(JSON.parse(JSON.stringify(declaration))).toEqual(declaration);
  await set.close();
  expect(lines).toEqual([]);
});

test('[TL-1, TL-2] a server that cannot be started takes no tool of ours with it', async () => {
  const lines: string[] = [];
  const log = createLog('warn', (line) => void lines.push(line));
  const broken = { name: 'broken', command: '/no/such/program', args: [], env: [] };
  const set = await createToolSet({ cwd: tempFolder(), mcpServers: [broken], log, version: '1.2.3' });
  expect(set.tools.map(({ declaration }) => declaration.name)).toEqual(Object.keys(REFERENCE));
  await set.close();
  expect(lines.join('')).toContain('broken');
});
