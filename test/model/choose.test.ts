import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AUTH_METHODS } from '../../src/model/auth-methods.ts';
import { createModelSource, type ModelOptions } from '../../src/model/choose.ts';
import { SessionFault } from '../../src/session/faults.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';
import { tempFolder } from '../support/temp.ts';

interface World {
  readonly flags?: Partial<ModelOptions>;
  readonly env?: Record<string, string>;
  readonly workspace?: string;
  readonly user?: string;
}

/** A model source in a workspace and a home with these settings files. */
function world({ flags = {}, env = {}, workspace, user }: World) {
  const folder = tempFolder({
    'cwd/.keep': '',
    ...(workspace !== undefined && { 'cwd/.qwen/settings.json': workspace }),
    ...(user !== undefined && { 'home/.qwen/settings.json': user }),
  });
  const cwd = join(folder, 'cwd');
  return { cwd, folder, source: createModelSource({ ...flags, env, home: join(folder, 'home') }) };
}

/** The provider and model that are chosen, or the fault. */
async function chosen(given: World): Promise<string> {
  const { source, cwd } = world(given);
  try {
    const model = await source(cwd);
    return `${model.authType} ${model.name}`;
  } catch (error) {
    if (!(error instanceof SessionFault)) throw error;
    return `${error.kind}: ${error.message}`;
  }
}

const settings = (selectedType: string, name?: string) =>
  JSON.stringify({ security: { auth: { selectedType } }, ...(name && { model: { name } }) });
const GEMINI = { GEMINI_API_KEY: 'k' };
const ALL = { OPENAI_API_KEY: 'o', GEMINI_API_KEY: 'g', ANTHROPIC_API_KEY: 'a' };

describe('the provider', () => {
  test.each<[string, World, string | RegExp]>([
    ['nothing configured: the scripted demo', {}, 'scripted scripted-demo'],
    ['a flag', { flags: { authType: 'gemini' }, env: GEMINI }, 'gemini gemini-2.5-pro'],
    [
      'a flag before the settings',
      { flags: { authType: 'scripted' }, user: settings('gemini'), env: GEMINI },
      'scripted scripted-demo',
    ],
    [
      'the workspace before the user',
      { workspace: settings('gemini'), user: settings('scripted'), env: GEMINI },
      /^gemini/,
    ],
    ['the user without a workspace', { user: settings('gemini'), env: ALL }, /^gemini/],
    ['settings before the environment', { user: settings('scripted'), env: ALL }, /^scripted/],
    ['a workspace file without the key', { workspace: '{}', user: settings('gemini'), env: GEMINI }, /^gemini/],
    ['OPENAI_API_KEY first', { env: ALL }, /^openai gpt-/],
    ['then GEMINI_API_KEY', { env: { ...ALL, OPENAI_API_KEY: '' } }, /^gemini/],
    ['then ANTHROPIC_API_KEY', { env: { ANTHROPIC_API_KEY: 'a' } }, /^anthropic claude-/],
    [
      'Vertex AI by its variable',
      { env: { ...GEMINI, GOOGLE_GENAI_USE_VERTEXAI: 'true', GOOGLE_CLOUD_PROJECT: 'p' } },
      /^vertex-ai/,
    ],
    ['a Vertex AI project', { flags: { authType: 'vertex-ai' }, env: { GOOGLE_CLOUD_PROJECT: 'p' } }, /^vertex-ai/],
    ['a Vertex AI key', { flags: { authType: 'vertex-ai' }, env: { GOOGLE_API_KEY: 'k' } }, /^vertex-ai/],
    ['gemini by GOOGLE_API_KEY', { flags: { authType: 'gemini' }, env: { GOOGLE_API_KEY: 'k' } }, /^gemini/],
    ['gemini named without a key', { flags: { authType: 'gemini' } }, /^auth_required: .*GEMINI_API_KEY/],
    ['gemini in the settings without a key', { user: settings('gemini') }, /^auth_required: .*GEMINI_API_KEY/],
    [
      'vertex-ai named without anything',
      { flags: { authType: 'vertex-ai' } },
      /^auth_required: .*GOOGLE_CLOUD_PROJECT/,
    ],
    ['openai named without a key', { flags: { authType: 'openai' } }, /^auth_required: .*OPENAI_API_KEY/],
    ['anthropic in the settings without a key', { user: settings('anthropic') }, /^auth_required: .*ANTHROPIC_API_KEY/],
    ['anthropic by its token', { flags: { authType: 'anthropic' }, env: { ANTHROPIC_AUTH_TOKEN: 't' } }, /^anthropic/],
    [
      'an endpoint on this machine needs no key',
      { flags: { authType: 'openai' }, env: { OPENAI_BASE_URL: 'http://localhost:11434/v1', OPENAI_MODEL: 'qwen3' } },
      'openai qwen3',
    ],
    [
      'an endpoint elsewhere does',
      { flags: { authType: 'openai' }, env: { OPENAI_BASE_URL: 'http://localhost.example.com/v1' } },
      /^auth_required: .*OPENAI_API_KEY/,
    ],
    ['a provider that we do not have', { user: settings('qwen-oauth'), env: GEMINI }, /^auth_required: .*"qwen-oauth"/],
  ])('[CLI-6] %s', async (_, given, expected) => {
    expect(await chosen(given)).toMatch(typeof expected === 'string' ? new RegExp(`^${expected}$`) : expected);
  });
});

describe('the model', () => {
  test.each<[string, World, string]>([
    [
      'a flag before all',
      {
        flags: { authType: 'gemini', model: 'flag' },
        env: { ...GEMINI, GEMINI_MODEL: 'env' },
        user: settings('gemini', 'set'),
      },
      'gemini flag',
    ],
    [
      'GEMINI_MODEL before the settings',
      { env: { ...GEMINI, GEMINI_MODEL: 'env' }, user: settings('gemini', 'set') },
      'gemini env',
    ],
    ['model.name of the settings', { env: GEMINI, user: settings('gemini', 'set') }, 'gemini set'],
    ['model.name beside no selected type', { env: GEMINI, user: '{"model":{"name":"set"}}' }, 'gemini set'],
    [
      'model.name that the settings have for another provider counts for nothing',
      { flags: { authType: 'gemini' }, env: GEMINI, user: settings('openai', 'gpt') },
      'gemini gemini-2.5-pro',
    ],
    ['OPENAI_MODEL', { env: { ...ALL, OPENAI_MODEL: 'env' }, user: settings('openai', 'set') }, 'openai env'],
    ['its alias', { env: { ...ALL, QWEN_MODEL: 'env' }, user: settings('openai', 'set') }, 'openai env'],
    ['ANTHROPIC_MODEL', { flags: { authType: 'anthropic' }, env: { ...ALL, ANTHROPIC_MODEL: 'env' } }, 'anthropic env'],
    [
      "the reference's default for every endpoint but OpenAI's own",
      { env: { ...ALL, OPENAI_BASE_URL: 'https://dashscope.example/v1' } },
      'openai qwen3.5-plus',
    ],
    ['a name for the scripted model', { flags: { authType: 'scripted', model: 'mine' } }, 'scripted mine'],
  ])('[CLI-6] %s', async (_, given, expected) => {
    expect(await chosen(given)).toBe(expected);
  });
});

describe('settings files', () => {
  test.each<[string, string, string | RegExp]>([
    [
      'comments, commas too many and a byte order mark',
      '\uFEFF{ // the provider\n "security": { "auth": { "selectedType": "gemini", /* "x" */ }, }, "url": "http://x//y,]" }',
      /^gemini/,
    ],
    ['an empty file', ' \n', /^gemini/],
    ['a file that is no JSON', '{"security": }', /^invalid_params: .*settings\.json is not JSON/],
    ['a file that holds a list', '[]', /^invalid_params: .*must hold a JSON object/],
    [
      'a selected type that is no string',
      '{"security":{"auth":{"selectedType":3}}}',
      /security\.auth\.selectedType must be a string/,
    ],
    ['an unexpected shape on the way', '{"security":"none","model":[]}', /^gemini/],
  ])('[CLI-6] %s', async (_, user, expected) => {
    expect(await chosen({ user, env: GEMINI })).toMatch(expected);
  });

  test('[CLI-6] QWEN_HOME moves the user file', async () => {
    const folder = tempFolder({
      'elsewhere/settings.json': settings('scripted'),
      'home/.qwen/settings.json': settings('gemini'),
    });
    const env = { ...GEMINI, QWEN_HOME: join(folder, 'elsewhere') };
    const source = createModelSource({ env, home: join(folder, 'home') });
    expect((await source(folder)).authType).toBe('scripted');
  });
});

describe('the scripted model', () => {
  test('[CLI-6, MD-3] --script chooses it and gives it its script', async () => {
    const folder = tempFolder({ 'script.json': '{"model": "m", /* c */ "rules": [{"steps": [{"text": "played"}]}]}' });
    const source = createModelSource({ scriptFile: join(folder, 'script.json'), env: ALL, home: folder });
    const model = await source(folder);
    expect(model.name).toBe('m');
    expect(partsOf(await collect(model, modelRequest('x')))).toEqual([{ text: 'played' }]);
  });

  test.each([
    ['{"rules": [{"steps": [{"txt": 1}]}]}', /script\.json cannot be played: rules\[0\]\.steps\[0\]/],
    ['nonsense', /script\.json cannot be played: .*JSON/],
  ])('[CLI-6, MD-3] a script that is wrong is refused: %s', async (text, message) => {
    const folder = tempFolder({ 'script.json': text });
    const source = createModelSource({ scriptFile: join(folder, 'script.json'), env: {}, home: folder });
    const fault = await rejection(source(folder));
    expect(fault).toMatchObject({ kind: 'invalid_params', message: expect.stringMatching(message) });
  });

  test('[CLI-6] a script that is not there is refused', async () => {
    const source = createModelSource({ scriptFile: '/nowhere/script.json', env: {}, home: '/nowhere' });
    expect(await rejection(source('/nowhere'))).toMatchObject({ message: expect.stringMatching(/ENOENT/) });
  });
});

describe('the source', () => {
  test('[CLI-6] gives one model a workspace', async () => {
    const { source, cwd, folder } = world({});
    expect(await source(cwd)).toBe(await source(cwd));
    expect(await source(folder)).not.toBe(await source(cwd));
  });

  test('[CLI-6] asks anew after a refusal', async () => {
    const env: Record<string, string> = {};
    const source = createModelSource({ authType: 'gemini', env, home: '/nowhere' });
    expect(await rejection(source('/nowhere'))).toMatchObject({ kind: 'auth_required' });
    env['GEMINI_API_KEY'] = 'k';
    expect((await source('/nowhere')).authType).toBe('gemini');
  });

  test('[CLI-6, ACP-2] authenticate changes the provider from then on', async () => {
    const { source, cwd } = world({ env: GEMINI });
    expect((await source(cwd)).authType).toBe('gemini');
    source.authenticate('scripted');
    expect((await source(cwd)).authType).toBe('scripted');
  });

  test('[CLI-6, ACP-2] authenticate refuses what was not offered and what lacks its key, and changes nothing', async () => {
    const { source, cwd } = world({});
    expect(() => source.authenticate('telepathy')).toThrow(expect.objectContaining({ kind: 'invalid_params' }));
    for (const method of ['gemini', 'openai', 'anthropic']) {
      expect(() => source.authenticate(method)).toThrow(expect.objectContaining({ kind: 'auth_required' }));
    }
    expect(() => source.authenticate('vertex-ai')).toThrow(expect.objectContaining({ kind: 'auth_required' }));
    expect((await source(cwd)).authType).toBe('scripted');
  });

  test('[ACP-1] every offered method is one that authenticate takes, and names its variables', () => {
    const env = { ...ALL, GOOGLE_CLOUD_PROJECT: 'p' };
    const { source } = world({ env });
    for (const method of AUTH_METHODS) expect(() => source.authenticate(method.id)).not.toThrow();
    expect(AUTH_METHODS.map(({ id }) => id)).toEqual(['openai', 'anthropic', 'gemini', 'vertex-ai', 'scripted']);
    expect(AUTH_METHODS[0]?.description).toMatch(/OPENAI_API_KEY/);
  });
});
