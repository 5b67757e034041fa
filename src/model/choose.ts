import { readFileSync } from 'node:fs';
import { parseJsonWithComments } from '../jsonc.ts';
import { SessionFault } from '../session/faults.ts';
import { AUTH_TYPES, type AuthType, type Model, type ModelSource } from '../session/ports.ts';
import { readSettings, type Settings } from '../settings.ts';
import { AUTH_METHODS } from './auth-methods.ts';

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
}

/** A `ModelSource` whose provider a client can change while the program runs. */
export interface SelectableModelSource extends ModelSource {
  /**
   * Chooses the provider for every workspace from now on. Throws `SessionFault`: `invalid_params` for a method that was
   * not offered, `auth_required` naming the variable that the provider lacks; the choice before it then stands.
   */
  authenticate(methodId: string): void;
}

/** Chooses one model a workspace on first use and keeps it. Provider code is loaded by the first that needs it. */
export function createModelSource(options: ModelOptions): SelectableModelSource {
  let authenticated: AuthType | undefined;
  const models = new Map<string, Promise<Model>>();
  const source: ModelSource = (cwd) => {
    const known = models.get(cwd);
    if (known !== undefined) return known;
    const model = openModel(options, cwd, authenticated);
    models.set(cwd, model);
    // A refusal is not kept: the person may put the missing key into the settings and try again.
    model.catch(() => models.get(cwd) === model && models.delete(cwd));
    return model;
  };
  return Object.assign(source, {
    authenticate(methodId: string) {
      const method = AUTH_METHODS.find(({ id }) => id === methodId);
      if (method === undefined) {
        throw new SessionFault('invalid_params', `There is no authentication method "${methodId}".`);
      }
      requireKey(method.id, options.env);
      authenticated = method.id;
      models.clear();
    },
  });
}

async function openModel(options: ModelOptions, cwd: string, authenticated: AuthType | undefined): Promise<Model> {
  const settings = readSettings({ cwd, home: options.home, env: options.env });
  const authType = authenticated ?? chooseAuthType(options, settings);
  if (authType === 'openai' || authType === 'anthropic') throw unavailable(authType);
  requireKey(authType, options.env);
  const name = chooseModelName(authType, options, settings);
  switch (authType) {
    case 'gemini':
    case 'vertex-ai': {
      const [{ createGeminiModel }, { withRetries }] = await Promise.all([import('./gemini.ts'), import('./retry.ts')]);
      return withRetries(createGeminiModel({ authType, name: name ?? DEFAULT_GEMINI_MODEL, env: options.env }));
    }
    case 'scripted':
      return openScripted(options.scriptFile, name);
  }
}

function unavailable(authType: 'openai' | 'anthropic'): SessionFault {
  return new SessionFault(
    'auth_required',
    `The provider "${authType}" is not available in this version yet, with ${KEYS[authType].needs} or without; ` +
      'use --auth-type gemini, vertex-ai or scripted.',
  );
}

const DEFAULT_GEMINI_MODEL = 'gemini-2.5-pro';

/** An explicit choice, else the settings', else that of the keys in the environment, else the scripted model. */
export function chooseAuthType(options: ModelOptions, settings: Settings): AuthType {
  const { env } = options;
  if (options.authType !== undefined) return options.authType;
  if (options.scriptFile !== undefined) return 'scripted';
  if (settings.authType !== undefined) return knownAuthType(settings.authType);
  if (env['OPENAI_API_KEY']) return 'openai';
  if (env['GEMINI_API_KEY']) return usesVertex(env) ? 'vertex-ai' : 'gemini';
  if (env['ANTHROPIC_API_KEY']) return 'anthropic';
  return usesVertex(env) ? 'vertex-ai' : 'scripted';
}

function knownAuthType({ value, file }: { readonly value: string; readonly file: string }): AuthType {
  const known = AUTH_TYPES.find((type) => type === value);
  if (known !== undefined) return known;
  throw new SessionFault(
    'auth_required',
    `${file} selects the provider "${value}", which this program does not have. ` +
      `Set security.auth.selectedType to one of ${AUTH_TYPES.join(', ')}, or start with --auth-type.`,
  );
}

/** `--model`, else the provider's variable, else `model.name` unless the settings have it for another provider. */
export function chooseModelName(authType: AuthType, options: ModelOptions, settings: Settings): string | undefined {
  if (options.model !== undefined) return options.model;
  const variable = { gemini: 'GEMINI_MODEL', 'vertex-ai': 'GEMINI_MODEL', openai: 'OPENAI_MODEL' }[authType as string];
  const fromEnv = variable && options.env[variable];
  if (fromEnv) return fromEnv;
  if (authType === 'scripted') return undefined;
  const forOther = settings.authType !== undefined && settings.authType.value !== authType;
  return forOther ? undefined : settings.model?.value;
}

function usesVertex(env: ModelOptions['env']): boolean {
  return /^(true|1)$/i.test(env['GOOGLE_GENAI_USE_VERTEXAI'] ?? '');
}

/** For each provider, the sets of variables of which one must be complete, and the text that names them. */
const KEYS: Readonly<Record<AuthType, { sets: readonly (readonly string[])[]; needs: string }>> = {
  gemini: { sets: [['GEMINI_API_KEY'], ['GOOGLE_API_KEY']], needs: 'GEMINI_API_KEY (or GOOGLE_API_KEY)' },
  'vertex-ai': {
    sets: [['GOOGLE_API_KEY'], ['GOOGLE_CLOUD_PROJECT']],
    needs: 'GOOGLE_CLOUD_PROJECT (and GOOGLE_CLOUD_LOCATION where it is not "global"), or GOOGLE_API_KEY',
  },
  openai: { sets: [['OPENAI_API_KEY']], needs: 'OPENAI_API_KEY' },
  anthropic: { sets: [['ANTHROPIC_API_KEY']], needs: 'ANTHROPIC_API_KEY' },
  scripted: { sets: [[]], needs: '' },
};

function requireKey(authType: AuthType, env: ModelOptions['env']): void {
  const { sets, needs } = KEYS[authType];
  if (sets.some((variables) => variables.every((variable) => env[variable]))) return;
  throw new SessionFault('auth_required', `The provider "${authType}" needs a key: set ${needs} in the environment.`);
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
