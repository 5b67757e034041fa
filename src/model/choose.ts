import { readFileSync } from 'node:fs';
import { parseJsonWithComments } from '../jsonc.ts';
import { SessionFault } from '../session/faults.ts';
import type { AuthType, Model, ModelSource } from '../session/ports.ts';
import { readProviderSettings, readSettings } from '../settings.ts';
import { AUTH_METHODS } from './auth-methods.ts';
import type { Endpoint } from './endpoint.ts';
import {
  chooseAuthType,
  chooseModelName,
  endpointOf,
  type ModelChoice,
  modelChoices,
  type Surroundings,
} from './selection.ts';
import { type Env, userEnv } from './user-env.ts';

export interface ModelOptions {
  /** `--auth-type`. */
  readonly authType?: AuthType;
  /** `--model`. */
  readonly model?: string;
  /** `--script`: the scripted model's script; chooses that model unless `authType` is given. */
  readonly scriptFile?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home directory. */
  readonly home: string;
  /** Is told of settings that are not heeded. */
  readonly warn?: (message: string) => void;
}

/** A `ModelSource` whose provider and model a client can change while the program runs. */
export interface SelectableModelSource extends ModelSource {
  /**
   * Chooses the provider for every workspace from now on. Throws `SessionFault`: `invalid_params` for a method that was
   * not offered, `auth_required` naming the variable that the provider lacks; the choice before it then stands.
   */
  authenticate(methodId: string): void;
  /** The models that a workspace can choose from, the one that it has among them. Throws as the source itself does. */
  choices(cwd: string): readonly ModelChoice[];
  /**
   * The model of a choice, by its key or by an id that only one has; the workspace's own stays. Throws as the source itself
   * does, and `SessionFault` `invalid_params` for what is no choice.
   */
  open(cwd: string, key: string): Promise<Model>;
}

/** Chooses one model a workspace on first use and keeps it. Provider code is loaded by the first that needs it. */
export function createModelSource(options: ModelOptions): SelectableModelSource {
  let authenticated: AuthType | undefined;
  const models = new Map<string, Promise<Model>>();
  const around = (cwd: string) => surroundings(options, cwd, authenticated);
  const source: ModelSource = (cwd) => {
    const known = models.get(cwd);
    if (known !== undefined) return known;
    const model = openModel(options, () => around(cwd));
    models.set(cwd, model);
    // A refusal is not kept: the person may put the missing key into the settings and try again.
    model.catch(() => models.get(cwd) === model && models.delete(cwd));
    return model;
  };
  const choices = (cwd: string): readonly ModelChoice[] => {
    const surroundings = around(cwd);
    const { providers, env } = surroundings;
    const current = currentChoice(surroundings);
    const found = modelChoices(providers, env, current.authType);
    return found.some(({ key }) => key === current.key) ? found : [current, ...found];
  };
  return Object.assign(source, {
    authenticate(methodId: string) {
      const method = AUTH_METHODS.find(({ id }) => id === methodId);
      if (method === undefined) {
        throw new SessionFault('invalid_params', `There is no authentication method "${methodId}".`);
      }
      // No workspace says where a key is.
      endpointOf(method.id, surroundings(options, undefined, method.id));
      authenticated = method.id;
      models.clear();
    },
    choices,
    async open(cwd: string, wanted: string) {
      return await openModel(options, () => around(cwd), choiceNamed(choices(cwd), wanted));
    },
  });
}

function choiceNamed(found: readonly ModelChoice[], wanted: string): ModelChoice {
  const named = found.filter(({ id }) => id === wanted);
  const choice = found.find(({ key }) => key === wanted) ?? (named.length === 1 ? named[0] : undefined);
  if (choice !== undefined) return choice;
  const keys = found.map(({ key }) => key).join(', ');
  throw new SessionFault('invalid_params', `There is no model "${wanted}" to choose; there are: ${keys}.`);
}

/** Reads what the choice depends on, anew each time: a person may have changed it. */
function surroundings(options: ModelOptions, cwd: string | undefined, authenticated?: AuthType): Surroundings {
  const places = { cwd: cwd ?? options.home, home: options.home, env: options.env };
  const providers = readProviderSettings(places);
  const authType = authenticated ?? options.authType;
  return {
    choices: {
      ...(authType !== undefined && { authType }),
      ...(options.model !== undefined && { model: options.model }),
      ...(options.scriptFile !== undefined && { scriptFile: options.scriptFile }),
    },
    settings: readSettings(places),
    providers,
    env: userEnv(options.env, options.home, providers.env),
  };
}

function currentChoice(around: Surroundings): ModelChoice {
  const authType = chooseAuthType(around);
  if (authType === 'scripted') {
    const name = chooseModelName(authType, around) ?? 'scripted';
    return { key: `${name}(scripted)`, id: name, name, authType };
  }
  const { name, baseUrl } = endpointOf(authType, around);
  const listed = modelChoices(around.providers, around.env, authType).find(
    (choice) => choice.id === name && choice.authType === authType,
  );
  if (listed !== undefined) return listed;
  return { key: `${name}(${authType})`, id: name, name, authType, ...(baseUrl !== undefined && { baseUrl }) };
}

async function openModel(options: ModelOptions, around: () => Surroundings, chosen?: ModelChoice): Promise<Model> {
  const surroundings = around();
  for (const ignored of surroundings.providers.ignored)
    options.warn?.(`${ignored} is not read; it belongs to the user's`);
  const authType = chosen?.authType ?? chooseAuthType(surroundings);
  if (authType === 'scripted') return openScripted(options.scriptFile, chooseModelName(authType, surroundings));
  const endpoint = endpointOf(authType, surroundings, chosen);
  const [provider, { withRetries }] = await Promise.all([
    openProvider(authType, endpoint, surroundings.env),
    import('./retry.ts'),
  ]);
  return withRetries(provider);
}

async function openProvider(authType: Exclude<AuthType, 'scripted'>, endpoint: Endpoint, env: Env): Promise<Model> {
  switch (authType) {
    case 'openai':
      return (await import('./openai.ts')).createOpenAiModel(endpoint);
    case 'anthropic':
      return (await import('./anthropic.ts')).createAnthropicModel(endpoint);
    case 'gemini':
    case 'vertex-ai': {
      const { createGeminiModel } = await import('./gemini.ts');
      return createGeminiModel({ authType, name: endpoint.name, env: googleEnv(authType, endpoint, env) });
    }
  }
}

/** Google's access is read from variables; a model of the settings has its own address and variable. */
function googleEnv(authType: 'gemini' | 'vertex-ai', { variable, apiKey, baseUrl }: Endpoint, env: Env): Env {
  if (authType === 'vertex-ai') return env;
  return {
    ...env,
    ...(!/^(GEMINI|GOOGLE)_API_KEY$/.test(variable) && { GEMINI_API_KEY: apiKey }),
    ...(baseUrl !== undefined && { GOOGLE_GEMINI_BASE_URL: baseUrl }),
  };
}

async function openScripted(scriptFile: string | undefined, name: string | undefined): Promise<Model> {
  const { createScriptedModel } = await import('./scripted.ts');
  if (scriptFile === undefined) {
    const { DEMO_SCRIPT } = await import('./demo-script.ts');
    return createScriptedModel(DEMO_SCRIPT, name);
  }
  const { parseScript } = await import('./script.ts');
  try {
    return createScriptedModel(parseScript(parseJsonWithComments(readFileSync(scriptFile, 'utf8'))), name);
  } catch (error) {
    throw new SessionFault(
      'invalid_params',
      `The script ${scriptFile} cannot be played: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
