import { expect, test } from 'vitest';
import { sessionUpdate } from '../../src/acp/updates.ts';
import { todoWrite } from '../../src/tools/todo-write.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, runTool, toolContext } from '../support/tools.ts';

interface Display {
  readonly planId: string;
  readonly todos: unknown[];
  readonly changes: unknown;
}

const todo = (id: string, status = 'pending', content = `do ${id}`) => ({ id, content, status });

test('[TL-1] todo_write gives the plan in the reference’s shape, and what is new and done in it', async () => {
  const context = toolContext(tempFolder());
  const tool = todoWrite();
  const write = async (...todos: unknown[]) =>
    (await runTool(tool, { todos }, context)) as { text: string; display: Display };
  const first = await write(todo('1'), todo('2', 'in_progress'));
  expect(first.display).toEqual({
    type: 'todo_list',
    planId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    todos: [todo('1'), todo('2', 'in_progress')],
    changes: { created: [todo('1'), todo('2', 'in_progress')], completed: [] },
  });
  const second = await write(todo('1'), todo('2', 'completed'), todo('3', 'completed'));
  expect(second.text).toBe('The list is shown: 2 of 3 completed.');
  expect(second.display.planId).toBe(first.display.planId);
  expect(second.display.changes).toEqual({ created: [todo('3', 'completed')], completed: [todo('2', 'completed')] });
  const event = { kind: 'result', callId: 'c', name: 'todo_write', ok: true, ...second } as const;
  expect(sessionUpdate(event, '/')).toMatchObject({
    sessionUpdate: 'plan',
    entries: [
      { content: 'do 1', status: 'pending', _meta: { qwenTodo: { id: '1' } } },
      { content: 'do 2', status: 'completed' },
      { content: 'do 3', status: 'completed' },
    ],
  });
  expect((await write()).display.todos).toEqual([]);
  expect((await write(todo('4'))).display.planId).not.toBe(first.display.planId);
});

test('[TL-1] todo_write says what is wrong with a list, and keeps the one before', async () => {
  const context = toolContext(tempFolder());
  const tool = todoWrite();
  await runTool(tool, { todos: [todo('1')] }, context);
  const cases: [unknown, RegExp][] = [
    [undefined, /must be a list/],
    [{}, /must be a list/],
    [[null], /todos\[0\]\.id/],
    [[todo('')], /todos\[0\]\.id/],
    [[todo('1'), todo('2', 'done')], /todos\[1\]\.status.*pending, in_progress, completed/],
    [[todo('1', 'pending', ' ')], /todos\[0\]\.content/],
    [[todo('1', 'pending', 'x'.repeat(3000))], /todos\[0\]\.content/],
    [[todo('x'.repeat(600))], /todos\[0\]\.id/],
    [[todo('1'), todo('1')], /its own "id"/],
    [Array.from({ length: 300 }, (_, index) => todo(String(index))), /at most 200/],
  ];
  for (const [todos, message] of cases) {
    const fault = await faultOf(() => tool.prepare({ todos }, context));
    expect([fault.type, fault.message]).toEqual(['invalid_tool_params', expect.stringMatching(message)]);
  }
  const { display } = await runTool(tool, { todos: [todo('1')] }, context);
  expect(display).toMatchObject({ changes: { created: [], completed: [] } });
});
