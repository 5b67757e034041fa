import { expect, test } from 'vitest';
import { createLog, type LogLevel, logLevelFrom } from '../../src/log.ts';

test.each<[LogLevel, string[]]>([
  ['debug', ['debug', 'info', 'warn', 'error']],
  ['info', ['info', 'warn', 'error']],
  ['warn', ['warn', 'error']],
  ['error', ['error']],
  ['silent', []],
])('[CLI-4] the level %s lets %j through', (level, expected) => {
  const lines: string[] = [];
  const log = createLog(level, (line) => lines.push(line));
  for (const name of ['debug', 'info', 'warn', 'error'] as const) log[name](name);
  expect(lines).toEqual(expected.map((name) => `qwen-acp ${name}: ${name}\n`));
});

test('[CLI-4] an entry is one line, stack and causes included', () => {
  const lines: string[] = [];
  const cause = new Error('the\r\ndisk');
  createLog('warn', (line) => lines.push(line)).error('it\nfailed', new Error('outer', { cause }));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(
    /^qwen-acp error: it \| failed: Error: outer \| at .* caused by Error: the \| disk \| at [^\n\r]*\n$/,
  );
});

test.each<[LogLevel | undefined, string | undefined, LogLevel]>([
  [undefined, undefined, 'warn'],
  [undefined, 'debug', 'debug'],
  [undefined, 'ERROR', 'error'],
  [undefined, 'loud', 'warn'],
  ['info', 'debug', 'info'],
])('[CLI-4] --log-level %s with QWEN_ACP_LOG=%s is %s', (flag, variable, expected) => {
  expect(logLevelFrom(flag, variable)).toBe(expected);
});
