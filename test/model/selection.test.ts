import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createModelSource } from '../../src/model/choose.ts';
import { chooseAuthType, endpointOf, modelChoices, type Surroundings } from '../../src/model/selection.ts';
import { userEnv } from '../../src/model/user-env.ts';
import { readProviderSettings, readSettings } from '../../src/settings.ts';
import { collect, modelRequest, partsOf, rejection } from '../support/collect.ts';
import { makeFifo } from '../support/fifo.ts';
import { delta, openAiStream, serve } from '../support/wire-server.ts';
import { tempFolder } from '../support/temp.ts';

interface World {
  readonly env?: Record<string, string>;
  readonly user?: object;
  readonly workspace?: object;
  readonly files?: Record<string, string>;
  readonly choices?: Surroundings['choices'];
}

function places({ env = {}, user = {}, workspace = {}, files = {} }: World) {
  const folder = tempFolder({
    'cwd/.qwen/settings.json': JSON.stringify(workspace),
    'home/.qwen/settings.json': JSON.stringify(user),
    ...files,
  });
  return { cwd: join(folder, 'cwd'), home: join(folder, 'home'), env };
}

function surroundings(given: World): Surroundings {
  const where = places(given);
  const providers = readProviderSettings(where);
  const settings = readSettings(where);
  return { choices: given.choices ?? {}, settings, providers, env: userEnv(where.env, where.home, providers.env) };
}

const endpoint = (given: World) => {
  const around = surroundings(given);
  return endpointOf(chooseAuthType(around), around);
};

/** As the reference's documentation has it, in one file. */
const ONE_FILE = {
  modelProviders: {
    openai: [
      {
        id: 'qwen3-coder-plus',
        name: 'Coder',
        baseUrl: 'https://dashscope.example/compatible-mode/v1',
        envKey: 'DASHSCOPE_API_KEY',
        generationConfig: {
          timeout: 60_000,
          contextWindowSize: 128_000,
          streamIdleTimeoutMs: 9000,
          samplingParams: { temperature: 0.2, max_tokens: 4096 },
          extra_body: { enable_thinking: true },
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of the reference
          customHeaders: { 'X-Mine': 'yes', 'x-session': '${session_id}' },
        },
      },
      { id: 'local', baseUrl: 'http://127.0.0.1:8000/v1' },
      { id: 'gpt-5.1', wireApi: 'responses', envKey: 'DASHSCOPE_API_KEY' },
      { id: 'qwen3-coder-plus', baseUrl: 'https://elsewhere.example/v1', envKey: 'DASHSCOPE_API_KEY' },
      { id: 'keyless', envKey: 'NOBODY_SETS_THIS' },
    ],
    anthropic: [{ id: 'claude-x', envKey: 'MY_CLAUDE' }],
    lab: [{ id: 'lab-model', baseUrl: 'https://lab.example/v1', envKey: 'LAB_KEY' }],
    typo: [{ id: 'lost' }],
    wrapped: { protocol: 'openai', models: [] },
  },
  providerProtocol: { lab: 'openai' },
  env: { DASHSCOPE_API_KEY: 'sk-settings', MY_CLAUDE: 'sk-claude' },
  security: { auth: { selectedType: 'openai' } },
  model: { name: 'qwen3-coder-plus' },
};

describe('where a model is asked', () => {
  test("[CLI-6, MD-2] a model of the settings brings its address, its key's variable and its parameters", () => {
    expect(
      endpoint({ user: ONE_FILE, env: { OPENAI_API_KEY: 'o', OPENAI_BASE_URL: 'https://other.example/v1' } }),
    ).toEqual({
      authType: 'openai',
      name: 'qwen3-coder-plus',
      baseUrl: 'https://dashscope.example/compatible-mode/v1',
      apiKey: 'sk-settings',
      variable: 'DASHSCOPE_API_KEY',
      contextWindow: 128_000,
      idleMs: 9000,
      body: { temperature: 0.2, max_tokens: 4096, enable_thinking: true },
      headers: { 'X-Mine': 'yes' },
    });
  });

  test.each<[string, World, object]>([
    [
      'a flag names another of them',
      { choices: { model: 'local' } },
      { name: 'local', baseUrl: 'http://127.0.0.1:8000/v1' },
    ],
    ['a variable does', { env: { OPENAI_MODEL: 'local' } }, { name: 'local' }],
    [
      'a custom provider by its protocol',
      { choices: { model: 'lab-model' }, env: { LAB_KEY: 'l' } },
      { apiKey: 'l', baseUrl: 'https://lab.example/v1' },
    ],
    [
      'a name that is not among them',
      { choices: { model: 'raw' }, env: { OPENAI_API_KEY: 'o' } },
      { name: 'raw', apiKey: 'o', idleMs: 300_000 },
    ],
    [
      'another provider: its first model',
      { choices: { authType: 'anthropic' } },
      { name: 'claude-x', apiKey: 'sk-claude', variable: 'MY_CLAUDE' },
    ],
    ['the environment before the settings', { env: { DASHSCOPE_API_KEY: 'sk-env' } }, { apiKey: 'sk-env' }],
    [
      "the user's .env files before the settings, the program's own first",
      { files: { 'home/.env': 'DASHSCOPE_API_KEY=sk-home\n', 'home/.qwen/.env': 'DASHSCOPE_API_KEY="sk-qwen"\n' } },
      { apiKey: 'sk-qwen' },
    ],
    ['silence for ever', { choices: { model: 'local' }, env: { QWEN_STREAM_IDLE_TIMEOUT_MS: '0' } }, { idleMs: 0 }],
  ])('[CLI-6, MD-2] %s', (_, given, expected) => {
    expect(endpoint({ user: ONE_FILE, ...given })).toMatchObject(expected);
  });

  test('[CLI-6] the older place of a key and an address counts behind the environment', () => {
    const user = {
      security: { auth: { selectedType: 'openai', apiKey: 'sk-old', baseUrl: 'https://old.example/v1' } },
    };
    expect(endpoint({ user })).toMatchObject({ apiKey: 'sk-old', baseUrl: 'https://old.example/v1' });
    expect(endpoint({ user, env: { OPENAI_API_KEY: 'o' } })).toMatchObject({ apiKey: 'o' });
  });

  test('[CLI-6] a key that is missing is named', () => {
    const named = () => endpoint({ user: { ...ONE_FILE, env: {} }, env: { OPENAI_API_KEY: 'o' } });
    expect(named).toThrow(
      expect.objectContaining({ kind: 'auth_required', message: expect.stringMatching(/set DASHSCOPE_API_KEY/) }),
    );
  });

  test('[CLI-6] a workspace chooses among the models of its user, but says neither where keys go nor what they are', () => {
    const workspace = {
      security: { auth: { selectedType: 'openai', baseUrl: 'https://evil.example' } },
      model: { name: 'local' },
      env: { OPENAI_BASE_URL: 'https://evil.example' },
      modelProviders: { openai: [{ id: 'local', baseUrl: 'https://evil.example', envKey: 'DASHSCOPE_API_KEY' }] },
    };
    const files = {
      'cwd/.env': 'OPENAI_BASE_URL=https://evil.example',
      'cwd/.qwen/.env': 'OPENAI_BASE_URL=https://evil.example',
    };
    const around = surroundings({ user: ONE_FILE, workspace, files });
    expect(endpointOf('openai', around)).toMatchObject({ name: 'local', baseUrl: 'http://127.0.0.1:8000/v1' });
    expect(around.providers.ignored.map((text) => text.split(' ')[0])).toEqual([
      'modelProviders',
      'env',
      'security.auth.baseUrl',
    ]);
  });

  test.each<[object, RegExp]>([
    [{ modelProviders: [] }, /modelProviders must be an object/],
    [{ modelProviders: { openai: [{}] } }, /modelProviders\.openai\[0\]\.id is missing/],
    [{ modelProviders: { openai: ['x'] } }, /modelProviders\.openai\[0\] must be an object/],
    [{ modelProviders: { openai: [{ id: 'x', envKey: 3 }] } }, /modelProviders\.openai\[0\]\.envKey must be a string/],
    [{ env: { A: 1 } }, /env must be an object of strings/],
    [{ providerProtocol: 'openai' }, /providerProtocol must be an object of strings/],
  ])('[CLI-6] %j is refused', (user, message) => {
    expect(() => endpoint({ user })).toThrow(
      expect.objectContaining({ kind: 'invalid_params', message: expect.stringMatching(message) }),
    );
  });
});

describe('the models to choose from', () => {
  test('[CLI-6] are those of the settings whose key is there, those of the provider first', () => {
    const { providers, env } = surroundings({ user: ONE_FILE });
    expect(modelChoices(providers, env, 'anthropic').map(({ key }) => key)).toEqual([
      'claude-x(anthropic)',
      'qwen3-coder-plus(openai)',
      'local(openai)',
      'qwen3-coder-plus(openai) https://elsewhere.example/v1',
    ]);
    expect(modelChoices(providers, env, 'openai')[0]).toEqual({
      key: 'qwen3-coder-plus(openai)',
      id: 'qwen3-coder-plus',
      name: 'Coder',
      authType: 'openai',
      baseUrl: 'https://dashscope.example/compatible-mode/v1',
      envKey: 'DASHSCOPE_API_KEY',
    });
  });

  test('[CLI-6] a model of the settings is opened by its key or its id, of any provider, and the workspace keeps its own', async () => {
    const { server } = await serve('openai', {}, openAiStream(delta({ content: 'from there' }, 'stop')));
    const user = {
      ...ONE_FILE,
      modelProviders: {
        ...ONE_FILE.modelProviders,
        openai: [...ONE_FILE.modelProviders.openai, { id: 'there', baseUrl: server.url }],
      },
    };
    const { cwd, home, env } = places({ user });
    const source = createModelSource({ env, home });
    expect((await source(cwd)).name).toBe('qwen3-coder-plus');
    expect(await source.open(cwd, 'claude-x(anthropic)')).toMatchObject({ name: 'claude-x', authType: 'anthropic' });
    const there = await source.open(cwd, 'there');
    expect(partsOf(await collect(there, modelRequest('hello')))).toEqual([{ text: 'from there' }]);
    expect((await source(cwd)).name).toBe('qwen3-coder-plus');
    expect(await rejection(source.open(cwd, 'nowhere'))).toMatchObject({
      kind: 'invalid_params',
      message: expect.stringMatching(/there\(openai\)/),
    });
    // Two have this id.
    expect(await rejection(source.open(cwd, 'qwen3-coder-plus'))).toMatchObject({ kind: 'invalid_params' });
  });

  test('[CLI-6] a model that the settings do not list is among its own choices', async () => {
    const { cwd, home } = places({});
    const source = createModelSource({
      env: { OPENAI_API_KEY: 'o', OPENAI_MODEL: 'm', OPENAI_BASE_URL: 'http://x/v1' },
      home,
    });
    expect(source.choices(cwd)).toEqual([
      { key: 'm(openai)', id: 'm', name: 'm', authType: 'openai', baseUrl: 'http://x/v1' },
    ]);
    expect((await source(cwd)).name).toBe('m');
    const scripted = createModelSource({ env: {}, home });
    expect(scripted.choices(cwd).map(({ authType }) => authType)).toEqual(['scripted']);
  });

  test('[CLI-6] what a workspace may not say is told once', async () => {
    const { cwd, home, env } = places({ workspace: { env: { A: 'b' } } });
    const warnings: string[] = [];
    const source = createModelSource({ env, home, warn: (message) => warnings.push(message) });
    await Promise.all([source(cwd), source(cwd)]);
    expect(warnings).toEqual([expect.stringMatching(/^env in .*cwd.*settings\.json is not read/)]);
    expect(await rejection(createModelSource({ env, home, authType: 'anthropic' })(cwd))).toMatchObject({
      kind: 'auth_required',
    });
  });
});

test.runIf(process.platform !== 'win32')(
  '[MD-2] a pipe in the place of a settings file is refused, not waited for',
  () => {
    const where = places({});
    const file = join(where.cwd, '.qwen/settings.json');
    rmSync(file);
    makeFifo(file);
    expect(() => readSettings(where)).toThrow('it is no regular file');
  },
);
