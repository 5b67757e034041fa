import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../src/cli/full.ts';
import { parseServeArguments, SERVE_OPTIONS, type ServeArguments } from '../../src/cli/serve-options.ts';

const PLAIN: ServeArguments = {
  restoreAskUserQuestion: false,
  experimentalLsp: false,
  requireAuth: false,
  allowOrigins: [],
  child: { restoreAskUserQuestion: false },
};
const RESTORE = { restoreAskUserQuestion: true, child: { restoreAskUserQuestion: true } };

describe('serve', () => {
  test.each<[string, Partial<ServeArguments> | 'text' | 'fault']>([
    ['serve', {}],
    ['serve --no-web', {}],
    ['serve --restore-ask-user-question', RESTORE],
    ['serve --restoreAskUserQuestion=true', RESTORE],
    ['serve --restore-ask-user-question --no-restore-ask-user-question', {}],
    ['serve --port 0 --hostname ::1', { port: 0, hostname: '::1' }],
    ['serve --port 1 --port 2', { port: 2 }],
    [
      'serve --permission-strategy consensus --consensus-quorum 2',
      { permissionStrategy: 'consensus', consensusQuorum: 2 },
    ],
    ['serve --permission-response-timeout-ms 0', { permissionResponseTimeoutMs: 0 }],
    ['serve --initialize-timeout-ms=5', { initializeTimeoutMs: 5 }],
    ['serve --token t --require-auth', { token: 't', requireAuth: true }],
    ['serve --token 007', { token: '007' }],
    ['serve --max-sessions 3 --max-connections 4', { maxSessions: 3, maxConnections: 4 }],
    ['serve --allow-origin http://a.b', { allowOrigins: ['http://a.b'] }],
    ['serve --allow-origin http://a.b --allowOrigin=https://c:1', { allowOrigins: ['http://a.b', 'https://c:1'] }],
    ['serve --allow-origin *', { allowOrigins: ['*'] }],
    ['serve --model m --script s', { child: { restoreAskUserQuestion: false, model: 'm', script: 's' } }],
    ['serve --auth-type gemini', { child: { restoreAskUserQuestion: false, authType: 'gemini' } }],
    ['serve --log-level debug', { child: { restoreAskUserQuestion: false, logLevel: 'debug' } }],
    ['serve --experimental-lsp', { experimentalLsp: true }],
    ['serve --help', 'text'],
    ['serve --port', 'fault'],
    ['serve --port x', 'fault'],
    ['serve --port -1', 'fault'],
    ['serve --port 65536', 'fault'],
    ['serve --port 1.5', 'fault'],
    ['serve --hostname=', 'fault'],
    ['serve --token=', 'fault'],
    ['serve --consensus-quorum 0', 'fault'],
    ['serve --permission-strategy loudest', 'fault'],
    ['serve --allow-origin', 'fault'],
    ['serve --allow-origin --port 1', 'fault'],
    ['serve --allow-origin http://a.b/path', 'fault'],
    ['serve --allow-origin a.b', 'fault'],
    ['serve --script s --auth-type gemini', 'fault'],
    ['serve --bogus', 'fault'],
    ['serve --__proto__=1', 'fault'],
    ['serve extra', 'fault'],
    ['serve -- extra', 'fault'],
    ['--acp --port 1', 'fault'],
    ['serve --port 5 --port 1', { port: 1 }],
    ['serve --port -1 --port=1', { port: 1 }],
    ['--port 1', 'fault'],
  ])('[CLI-1, CLI-2, CLI-3] %j is read alike by the short path and by yargs', async (line, expected) => {
    const argv = line.split(' ');
    const [short, full] = [parseServeArguments(argv), await parseCommandLine(argv, '1.2.3')];
    if (typeof expected === 'string') expect({ short, full: full.kind }).toEqual({ short: undefined, full: expected });
    else {
      const options = { ...PLAIN, ...expected };
      expect({ short, full }).toEqual({ short: options, full: { kind: 'serve', options } });
    }
  });

  test('[CLI-3] whatever follows, both paths agree', async () => {
    const name = fc.constantFrom(
      ...Object.keys(SERVE_OPTIONS),
      'restore-ask-user-question',
      'model',
      'acp',
      'help',
      'bogus',
    );
    const value = fc.constantFrom('true', 'false', '1', '-1', '', 'http://a.b', 'consensus', 'a,b');
    const token = fc.oneof(
      { weight: 4, arbitrary: fc.tuple(name, value).map(([each, given]) => [`--${each}`, given]) },
      fc.tuple(name, value).map(([each, given]) => [`--${each}=${given}`]),
      name.map((each) => [`--no-${each}`]),
      value.map((each) => [each]),
      fc.constantFrom(['--'], ['-m', 'x'], ['--constructor']),
    );
    let plain = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(token, { maxLength: 4 }), async (tokens) => {
        const argv = ['serve', ...tokens.flat()];
        const short = parseServeArguments(argv);
        const full = await parseCommandLine(argv, '1.2.3');
        plain += short === undefined ? 0 : 1;
        // Help that is asked for and denied is left to yargs.
        if (short === undefined && argv.some((each) => /help/.test(each))) return;
        expect(full.kind === 'serve' ? full.options : undefined).toEqual(short);
      }),
      { numRuns: 80 },
    );
    expect(plain).toBeGreaterThan(4);
  });
});
