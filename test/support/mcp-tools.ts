import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/server';

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
const PAGE = 3;

interface ToolEntry {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: { readonly type: 'object'; readonly properties?: Record<string, object> };
  readonly outputSchema?: { readonly type: 'object'; readonly required: string[] };
  readonly annotations?: { readonly readOnlyHint: boolean };
}

const ANY = { type: 'object' } as const;
const TOOLS: readonly ToolEntry[] = [
  { name: 'echo', description: 'Says it again', inputSchema: { ...ANY, properties: { text: { type: 'string' } } } },
  { name: 'where', inputSchema: ANY, annotations: { readOnlyHint: true } },
  { name: 'fail', inputSchema: ANY },
  { name: 'die', inputSchema: ANY },
  { name: 'wait', inputSchema: ANY },
  { name: 'work', inputSchema: ANY },
  { name: 'grow', inputSchema: ANY },
  { name: 'mixed', inputSchema: ANY, outputSchema: { ...ANY, required: ['never'] } },
  { name: 'spawn', inputSchema: ANY },
  { name: 'much', inputSchema: ANY },
];

/** An MCP server of the official kind, with tools that do what clients must be able to stand. Its list comes in pages. */
export function createTestServer(): Server {
  const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: { listChanged: true } } });
  const tools = [...TOOLS];
  server.setRequestHandler('tools/list', ({ params }) => {
    const from = Number(params?.cursor ?? 0);
    const page = tools.slice(from, from + PAGE);
    return { tools: page as never, ...(from + PAGE < tools.length && { nextCursor: `${from + PAGE}` }) };
  });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const args = (params.arguments ?? {}) as Record<string, string>;
    const tell = (progress: number) =>
      mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: mcpReq._meta?.progressToken ?? 0, progress, total: 2, message: `step ${progress}` },
      });
    switch (params.name) {
      case 'echo':
        return text(`${args['text']}`);
      case 'where':
        return text(
          JSON.stringify({ cwd: process.cwd(), env: process.env, pid: process.pid, client: server.getClientVersion() }),
        );
      case 'fail':
        return { ...text('it went wrong'), isError: true };
      case 'die':
        process.stderr.write('I cannot go on\n', () => process.exit(3));
        return new Promise(() => {});
      case 'wait':
        await tell(1);
        await once(mcpReq.signal, 'abort');
        writeFileSync(`${args['file']}`, 'cancelled');
        return text('too late');
      case 'work':
        await tell(1);
        await tell(2);
        // The client takes an answer before what stands directly before it.
        await server.ping();
        return text('done');
      case 'grow':
        tools.push({ name: 'grown', inputSchema: ANY });
        await server.sendToolListChanged();
        return text('grown');
      case 'mixed':
        return {
          content: [
            { type: 'text', text: 'one' },
            { type: 'image', data: 'A'.repeat(8192), mimeType: 'image/png' },
            { type: 'resource', resource: { uri: 'file:///two', text: 'two' } },
            { type: 'resource_link', uri: 'file:///three', name: 'three' },
          ],
        };
      case 'spawn': {
        const child = spawn('sleep', ['600'], { stdio: 'ignore' });
        return text(`${child.pid}`);
      }
      case 'much':
        return text('x'.repeat(300_000));
      default:
        throw new Error(`no tool ${params.name}`);
    }
  });
  return server;
}
