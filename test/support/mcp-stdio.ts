import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { createTestServer } from './mcp-tools.ts';

// The test server as a program. MODE says how it misbehaves.
const mode = process.env['MODE'];
if (mode === 'mute') process.stdin.resume();
else if (mode === 'exit') {
  process.stderr.write('\u001b[31mno licence\u001b[0m\n');
  process.exitCode = 4;
} else if (mode === 'flood') {
  process.stdout.write('x'.repeat(11 * 1024 * 1024));
} else {
  if (mode === 'noise') process.stdout.write('Welcome to the server!\n{"not":"a message"}\n');
  if (mode === 'stubborn') {
    process.on('SIGTERM', () => {});
    setInterval(() => {}, 1000);
  }
  await createTestServer().connect(new StdioServerTransport());
}
