import { homedir } from 'node:os';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSessionId } from '../../src/session/ids.ts';
import { chatPath, chatsDir, projectSlug, runtimeDir } from '../../src/session/paths.ts';

const ID = '0b251374-7eef-4fda-9a33-b6ea5dceeed4';

describe('the runtime folder', () => {
  test.each<[string, Record<string, string>, string]>([
    ['QWEN_RUNTIME_DIR before QWEN_HOME', { QWEN_RUNTIME_DIR: '/run', QWEN_HOME: '/home' }, '/run'],
    ['QWEN_HOME', { QWEN_HOME: '/home' }, '/home'],
    ['QWEN_HOME when QWEN_RUNTIME_DIR is empty', { QWEN_RUNTIME_DIR: '', QWEN_HOME: '/home' }, '/home'],
    ['.qwen in the home folder', { HOME: '/me' }, '/me/.qwen'],
    ['.qwen in the home folder of the account without HOME', {}, `${homedir()}/.qwen`],
    ['~ expanded', { HOME: '/me', QWEN_RUNTIME_DIR: '~' }, '/me'],
    ['~/ expanded', { HOME: '/me', QWEN_HOME: '~/q' }, '/me/q'],
    ['another user’s ~ taken as a name', { HOME: '/me', QWEN_HOME: '/x/~you' }, '/x/~you'],
    ['a relative path made absolute', { QWEN_HOME: 'q' }, `${process.cwd()}/q`],
  ])('[TR-1] is %s', (_, env, expected) => {
    expect(runtimeDir(env)).toBe(expected);
  });
});

describe('the project folder', () => {
  test.each([
    ['/srv/project', '-srv-project'],
    ['/srv/My Proj_1.x-é', '-srv-My-Proj-1-x--'],
    ['/srv/🙂', '-srv---'],
  ])('[TR-1] of %s is %s', (cwd, slug) => {
    expect(projectSlug(cwd)).toBe(slug);
  });

  test('[TR-1, TR-6] is one path segment of letters, digits and dashes, as long as the directory’s name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (cwd) => {
        expect(projectSlug(cwd)).toMatch(new RegExp(`^[A-Za-z0-9-]{${cwd.length}}$`));
      }),
    );
  });

  test('[TR-1] is the same with and without a slash at the end', () => {
    const env = { QWEN_HOME: '/q' };
    expect(chatsDir('/srv/project/', env)).toBe('/q/projects/-srv-project/chats');
    expect(chatsDir('/srv/project', env)).toBe('/q/projects/-srv-project/chats');
  });
});

describe('a session id', () => {
  test('[TR-6] is compared without case and stored in lower case', () => {
    expect(chatPath('/srv/project', ID.toUpperCase(), { QWEN_HOME: '/q' })).toBe(
      `/q/projects/-srv-project/chats/${ID}.jsonl`,
    );
  });

  test.each([
    '',
    'x',
    '../../etc/passwd',
    `../${ID}`,
    `${ID}/../x`,
    `${ID}\n`,
    ` ${ID}`,
    `${ID}.jsonl`,
    `${ID}\0`,
    ID.replaceAll('-', ''),
    `{${ID}}`,
    // Lower case makes k of the Kelvin sign, and no digit of anything.
    ID.replace('b', 'K'),
    'x'.repeat(1_000_000),
  ])('[TR-6, ACP-4] %j is the id of no session', (text) => {
    const parse = () => parseSessionId(text);
    expect(parse).toThrow(expect.objectContaining({ kind: 'unknown_session' }));
    expect(parse).toThrow(/^.{0,200}$/);
  });

  test('[TR-6] is every UUID', () => {
    fc.assert(
      fc.property(fc.uuid(), (id) => {
        expect(parseSessionId(id)).toBe(id);
        expect(parseSessionId(id.toUpperCase())).toBe(id);
      }),
    );
  });
});
