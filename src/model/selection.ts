import { SessionFault } from '../session/faults.ts';
import { AUTH_TYPES, type AuthType } from '../session/ports.ts';
import type { ProviderModel, ProviderSettings, Settings } from '../settings.ts';
import { type Endpoint, hostOf, IDLE_MS, isLoopback } from './endpoint.ts';
import type { Env } from './user-env.ts';

/** What a person chose on the command line or later, before their settings and environment. */
export interface Choices {
  readonly authType?: AuthType;
  readonly model?: string;
  readonly scriptFile?: string;
}

/** All that a model is chosen by. */
export interface Surroundings {
  readonly choices: Choices;
  readonly settings: Settings;
  readonly providers: ProviderSettings;
  readonly env: Env;
}

/** A model that a person can choose. */
export interface ModelChoice {
  /** Names it among all choices: `<id>(<authType>)`, with the address behind it where that alone tells two apart. */
  readonly key: string;
  /** As the provider names it. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly authType: AuthType;
  readonly baseUrl?: string;
  readonly envKey?: string;
}

/** The variables of each provider. */
const VARIABLES: Readonly<Record<AuthType, { key: readonly string[]; model: readonly string[]; address?: string }>> = {
  openai: { key: ['OPENAI_API_KEY'], model: ['OPENAI_MODEL', 'QWEN_MODEL'], address: 'OPENAI_BASE_URL' },
  anthropic: {
    key: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN'],
    model: ['ANTHROPIC_MODEL'],
    address: 'ANTHROPIC_BASE_URL',
  },
  gemini: { key: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'], model: ['GEMINI_MODEL'], address: 'GOOGLE_GEMINI_BASE_URL' },
  'vertex-ai': {
    key: ['GOOGLE_API_KEY', 'GOOGLE_CLOUD_PROJECT'],
    model: ['GEMINI_MODEL', 'GOOGLE_MODEL'],
    address: 'GOOGLE_VERTEX_BASE_URL',
  },
  scripted: { key: [], model: [] },
};

const NEEDS: Readonly<Record<AuthType, string>> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN)',
  gemini: 'GEMINI_API_KEY (or GOOGLE_API_KEY)',
  'vertex-ai': 'GOOGLE_CLOUD_PROJECT (and GOOGLE_CLOUD_LOCATION where it is not "global"), or GOOGLE_API_KEY',
  scripted: '',
};

/** An explicit choice, else the settings', else that of the keys in the environment, else the scripted model. */
export function chooseAuthType({ choices, settings, providers, env }: Surroundings): AuthType {
  if (choices.authType !== undefined) return choices.authType;
  if (choices.scriptFile !== undefined) return 'scripted';
  if (settings.authType !== undefined) return knownAuthType(settings.authType, providers);
  if (env['OPENAI_API_KEY']) return 'openai';
  if (env['GEMINI_API_KEY']) return usesVertex(env) ? 'vertex-ai' : 'gemini';
  if (env['ANTHROPIC_API_KEY']) return 'anthropic';
  return usesVertex(env) ? 'vertex-ai' : 'scripted';
}

function usesVertex(env: Env): boolean {
  return /^(true|1)$/i.test(env['GOOGLE_GENAI_USE_VERTEXAI'] ?? '');
}

function isAuthType(text: string | undefined): text is AuthType {
  return AUTH_TYPES.some((type) => type === text);
}

function knownAuthType({ value, file }: NonNullable<Settings['authType']>, { protocols }: ProviderSettings): AuthType {
  const type = protocols[value] ?? value;
  if (isAuthType(type)) return type;
  throw new SessionFault(
    'auth_required',
    `${file} selects the provider "${value}", which this program does not have. ` +
      `Set security.auth.selectedType to one of ${AUTH_TYPES.join(', ')}, or start with --auth-type.`,
  );
}

/**
 * `--model`, else the provider's variable, else `model.name` unless the settings have it for another provider, else the first
 * of the provider's models in the settings.
 */
export function chooseModelName(authType: AuthType, surroundings: Surroundings): string | undefined {
  const { choices, settings, providers, env } = surroundings;
  if (choices.model !== undefined) return choices.model;
  const variable = VARIABLES[authType].model.find((each) => env[each]);
  if (variable !== undefined) return env[variable];
  if (authType === 'scripted') return undefined;
  const selected = settings.authType?.value;
  const forOther = selected !== undefined && (providers.protocols[selected] ?? selected) !== authType;
  return (forOther ? undefined : settings.model?.value) ?? spoken(providers, authType)[0]?.id;
}

/** The models of the settings whose protocol this program speaks. */
function spoken(providers: ProviderSettings, authType: AuthType): readonly ProviderModel[] {
  const models = providers.providers[authType] ?? [];
  return models.filter(({ wireApi = 'chat-completions' }) => wireApi === 'chat-completions');
}

/** Which of the settings' models a name, and an address where there are several, stands for. */
function findModel(providers: ProviderSettings, authType: AuthType, name: string | undefined, baseUrl?: string) {
  return spoken(providers, authType).find((model) => model.id === name && (!baseUrl || model.baseUrl === baseUrl));
}

/**
 * Where a provider is and how it is asked. A model of the settings brings its own address, variable of the key and
 * parameters. Throws `SessionFault` `auth_required` that names the variable to set.
 */
export function endpointOf(authType: AuthType, surroundings: Surroundings, chosen?: ModelChoice): Endpoint {
  const { providers, env } = surroundings;
  const name = chosen?.id ?? chooseModelName(authType, surroundings);
  const model = findModel(providers, authType, name, chosen?.baseUrl);
  const { key, address } = VARIABLES[authType];
  const own = authType === 'openai' ? providers : undefined;
  const baseUrl = model?.baseUrl ?? ((address && env[address]) || own?.baseUrl?.value);
  const variable = model?.envKey ?? key.find((each) => env[each]) ?? key[0] ?? '';
  const secret = env[variable] ?? (model === undefined ? own?.apiKey?.value : undefined);
  if (!secret && key.length > 0 && !(authType === 'openai' && isLoopback(baseUrl))) {
    const needs = model?.envKey ?? NEEDS[authType];
    throw new SessionFault('auth_required', `The provider "${authType}" needs a key: set ${needs} in the environment.`);
  }
  return {
    authType,
    name: name ?? defaultModel(authType, baseUrl),
    variable,
    ...(baseUrl && { baseUrl }),
    ...(secret && { [variable === 'ANTHROPIC_AUTH_TOKEN' ? 'authToken' : 'apiKey']: secret }),
    ...parametersOf(model?.generationConfig ?? {}, env),
  };
}

/** For whoever names none. The reference's default stands for every endpoint but OpenAI's own, which has no such model. */
function defaultModel(authType: AuthType, baseUrl: string | undefined): string {
  if (authType === 'anthropic') return 'claude-sonnet-5-5';
  if (authType !== 'openai') return 'gemini-2.5-pro';
  return baseUrl === undefined || hostOf(baseUrl) === 'api.openai.com' ? 'gpt-5.1' : 'qwen3.5-plus';
}

type Parameters = Pick<Endpoint, 'body' | 'headers' | 'contextWindow' | 'idleMs'>;

/** What of a model's `generationConfig` this program knows. */
function parametersOf(config: Readonly<Record<string, unknown>>, env: Env): Parameters {
  const { samplingParams, extra_body: extra, customHeaders, contextWindowSize, streamIdleTimeoutMs } = config;
  const body = { ...recordOf(samplingParams), ...recordOf(extra) };
  const headers = Object.entries(recordOf(customHeaders)).flatMap(([name, value]) =>
    typeof value === 'string' && !value.includes('${') ? [[name, value]] : [],
  );
  const idle = [streamIdleTimeoutMs, Number(env['QWEN_STREAM_IDLE_TIMEOUT_MS'] || Number.NaN)].find(isCount);
  return {
    idleMs: idle ?? IDLE_MS,
    ...(Object.keys(body).length > 0 && { body }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(isCount(contextWindowSize) && contextWindowSize > 0 && { contextWindow: contextWindowSize }),
  };
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/**
 * The models of the settings that a person can choose: those whose key is set, the ones of `authType` first. Of two with one
 * name and address the first counts.
 */
export function modelChoices(providers: ProviderSettings, env: Env, authType: AuthType): readonly ModelChoice[] {
  const types = [authType, ...AUTH_TYPES.filter((type) => type !== authType && type !== 'scripted')];
  const found = new Map<string, ModelChoice>();
  for (const type of types) {
    const taken = new Set<string>();
    for (const { id, name, baseUrl, envKey } of spoken(providers, type)) {
      const hasKey = envKey ? env[envKey] : VARIABLES[type].key.some((each) => env[each]);
      if (!hasKey && !(type === 'openai' && isLoopback(baseUrl))) continue;
      if (taken.has(`${id} ${baseUrl}`)) continue;
      taken.add(`${id} ${baseUrl}`);
      const plain = `${id}(${type})`;
      const key = found.has(plain) ? `${plain} ${baseUrl ?? ''}`.trim() : plain;
      const optional = { ...(baseUrl !== undefined && { baseUrl }), ...(envKey !== undefined && { envKey }) };
      found.set(key, { key, id, name: name ?? id, authType: type, ...optional });
    }
  }
  return [...found.values()];
}
