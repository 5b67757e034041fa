import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isMissing } from './error-code.ts';
import { SessionFault } from './session/faults.ts';
import { parseJsonWithComments } from './jsonc.ts';
import { isRecord } from './is-record.ts';

/** What this program reads of the reference's settings, and the file that each value came from. */
export interface Settings {
  readonly authType?: Sourced;
  readonly model?: Sourced;
}

export interface Sourced<T = string> {
  readonly value: T;
  readonly file: string;
}

/** One model of `modelProviders`. */
export interface ProviderModel {
  /** As the provider names it. */
  readonly id: string;
  readonly name?: string;
  /** The variable that holds the key. */
  readonly envKey?: string;
  readonly baseUrl?: string;
  readonly generationConfig: Readonly<Record<string, unknown>>;
  /** Anything but `chat-completions` is a protocol that this program does not speak. */
  readonly wireApi?: string;
}

/** Where keys go and what they are. */
export interface ProviderSettings {
  /** By the key of `modelProviders`, or what `providerProtocol` maps it to. */
  readonly providers: Readonly<Record<string, readonly ProviderModel[]>>;
  /** `providerProtocol`. */
  readonly protocols: Readonly<Record<string, string>>;
  /** `env`: variables that are set nowhere else. */
  readonly env: Readonly<Record<string, string>>;
  /** `security.auth.apiKey` and `baseUrl`. */
  readonly apiKey?: Sourced;
  readonly baseUrl?: Sourced;
  /** What a workspace's file says of all this, and nobody heeds. */
  readonly ignored: readonly string[];
}

/** How a daemon's questions are voted on. */
export interface PolicySettings {
  readonly permissionStrategy?: Sourced;
  readonly consensusQuorum?: Sourced<number>;
}

export interface SettingsPlaces {
  readonly cwd: string;
  /** The user's home directory. */
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads `<cwd>/.qwen/settings.json`, then `<QWEN_HOME or ~/.qwen>/settings.json`; each key comes from the first file
 * that has it. Throws `SessionFault` `invalid_params` for a file that is no JSON object or has a key of the wrong type:
 * guessing a provider around a broken file could send a conversation to the wrong one.
 */
export function readSettings(places: SettingsPlaces): Settings {
  const documents = readDocuments(places);
  const authType = firstText(documents, ['security', 'auth', 'selectedType']);
  const model = firstText(documents, ['model', 'name']);
  return { ...(authType && { authType }), ...(model && { model }) };
}

/** Reads `policy` from the same files, by the same rules. */
export function readPolicySettings(places: SettingsPlaces): PolicySettings {
  const documents = readDocuments(places);
  const permissionStrategy = firstText(documents, ['policy', 'permissionStrategy']);
  const consensusQuorum = first(documents, ['policy', 'consensusQuorum'], isCount, 'a whole number from 1');
  return { ...(permissionStrategy && { permissionStrategy }), ...(consensusQuorum && { consensusQuorum }) };
}

/**
 * Reads what the user's own settings file says of providers. A workspace's file is not asked: whoever wrote it could have
 * the user's key sent to an address of theirs. Throws as `readSettings` does.
 */
export function readProviderSettings(places: SettingsPlaces): ProviderSettings {
  const [workspace, ...user] = readDocuments(places);
  const apiKey = firstText(user, ['security', 'auth', 'apiKey']);
  const baseUrl = firstText(user, ['security', 'auth', 'baseUrl']);
  const protocols = first(user, ['providerProtocol'], isTextRecord, 'an object of strings')?.value ?? {};
  return {
    providers: providersOf(user, protocols),
    protocols,
    env: first(user, ['env'], isTextRecord, 'an object of strings')?.value ?? {},
    ...(apiKey && { apiKey }),
    ...(baseUrl && { baseUrl }),
    ignored: USER_ONLY.filter((path) => workspace && workspace.file !== user[0]?.file && valueAt(workspace, path)).map(
      (path) => `${path.join('.')} in ${workspace?.file}`,
    ),
  };
}

const USER_ONLY = [['modelProviders'], ['env'], ['security', 'auth', 'apiKey'], ['security', 'auth', 'baseUrl']];

function providersOf(documents: readonly Document[], protocols: Readonly<Record<string, string>>) {
  const found = first(documents, ['modelProviders'], isRecord, 'an object');
  const providers = new Map<string, ProviderModel[]>();
  for (const [key, models] of Object.entries(found?.value ?? {})) {
    // The wrapped form of an earlier version is passed over by the reference too.
    if (!Array.isArray(models)) continue;
    const list = providers.get(protocols[key] ?? key) ?? [];
    providers.set(protocols[key] ?? key, list);
    for (const [index, model] of models.entries()) {
      list.push(providerModel(model, `In the settings file ${found?.file}, modelProviders.${key}[${index}]`));
    }
  }
  return Object.fromEntries(providers);
}

function providerModel(model: unknown, where: string): ProviderModel {
  const wrong = (what: string) => new SessionFault('invalid_params', `${where}${what}`);
  if (!isRecord(model)) throw wrong(' must be an object.');
  const text = (key: 'id' | 'name' | 'envKey' | 'baseUrl' | 'wireApi') => {
    const value = model[key];
    if (value === undefined || value === null || value === '') return {};
    if (!isText(value)) throw wrong(`.${key} must be a string.`);
    return { [key]: value };
  };
  const { id } = text('id');
  if (id === undefined) throw wrong('.id is missing.');
  const config = model['generationConfig'];
  const optional = { ...text('name'), ...text('envKey'), ...text('baseUrl'), ...text('wireApi') };
  return { id, ...optional, generationConfig: isRecord(config) ? config : {} };
}

function isTextRecord(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every(isText);
}

/** The folder of the reference's files that belong to the user. */
export function userFolder({ env, home }: Pick<SettingsPlaces, 'env' | 'home'>): string {
  return env['QWEN_HOME'] || join(home, '.qwen');
}

const MAX_BYTES = 4 * 1024 * 1024;

interface Document {
  readonly file: string;
  readonly root: unknown;
}

function readDocuments(places: SettingsPlaces): Document[] {
  const files = [join(places.cwd, '.qwen', 'settings.json'), join(userFolder(places), 'settings.json')];
  return files.map((file) => ({ file, root: readDocument(file) }));
}

function readDocument(file: string): unknown {
  let text: string;
  try {
    // Opening a pipe would wait for its writer, and a device may have no end: a workspace can hold either.
    const stats = statSync(file);
    if (!stats.isFile()) throw new Error('it is no regular file');
    if (stats.size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new SessionFault('invalid_params', `The settings file ${file} cannot be read: ${messageOf(error)}`);
  }
  if (text.trim() === '') return undefined;
  try {
    const root = parseJsonWithComments(text);
    if (isRecord(root)) return root;
  } catch (error) {
    throw new SessionFault('invalid_params', `The settings file ${file} is not JSON: ${messageOf(error)}`);
  }
  throw new SessionFault('invalid_params', `The settings file ${file} must hold a JSON object.`);
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 1;

function firstText(documents: readonly Document[], path: readonly string[]): Sourced | undefined {
  return first(documents, path, isText, 'a string');
}

function first<T>(
  documents: readonly Document[],
  path: readonly string[],
  is: (value: unknown) => value is T,
  kind: string,
): Sourced<T> | undefined {
  for (const document of documents) {
    const { file } = document;
    const value = valueAt(document, path);
    if (value === undefined || value === null || value === '') continue;
    if (is(value)) return { value, file };
    throw new SessionFault('invalid_params', `In the settings file ${file}, ${path.join('.')} must be ${kind}.`);
  }
  return undefined;
}

function valueAt({ root }: Document, path: readonly string[]): unknown {
  let value: unknown = root;
  for (const key of path) value = isRecord(value) ? value[key] : undefined;
  return value;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
