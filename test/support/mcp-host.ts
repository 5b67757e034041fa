import { createLog } from '../../src/log.ts';
import type { ToolContext } from '../../src/session/ports.ts';
import { connectMcpServers } from '../../src/tools/mcp.ts';

// A process that has servers and leaves without closing them. Arguments: the test server's program.
const env = [{ name: 'MODE', value: 'stubborn' }];
const server = { name: 'test', command: process.execPath, args: [`${process.argv[2]}`], env };
const set = await connectMcpServers([server], { cwd: process.cwd(), log: createLog('silent'), version: '1.2.3' });
const call = async (name: string) => {
  const tool = set.tools.find(({ declaration }) => declaration.name === name);
  const context = { signal: new AbortController().signal, progress: () => {} } as unknown as ToolContext;
  return (await tool?.prepare({}, context))?.run();
};
const where = JSON.parse(`${(await call('mcp__test__where'))?.text}`);
const child = Number((await call('mcp__test__spawn'))?.text);
process.send?.([where.pid, child], () => process.exit(0));
