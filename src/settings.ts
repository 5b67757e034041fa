import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SessionFault } from './session/faults.ts';
import { parseJsonWithComments } from './jsonc.ts';

/** What this program reads of the reference's settings, and the file that each value came from. */
export interface Settings {
  readonly authType?: Sourced;
  readonly model?: Sourced;
}

export interface Sourced<T = string> {
  readonly value: T;
  readonly file: string;
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

interface Document {
  readonly file: string;
  readonly root: unknown;
}

function readDocuments(places: SettingsPlaces): Document[] {
  const files = [
    join(places.cwd, '.qwen', 'settings.json'),
    join(places.env['QWEN_HOME'] || join(places.home, '.qwen'), 'settings.json'),
  ];
  return files.map((file) => ({ file, root: readDocument(file) }));
}

function readDocument(file: string): unknown {
  let text: string;
  try {
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
  for (const { file, root } of documents) {
    let value: unknown = root;
    for (const key of path) value = isRecord(value) ? value[key] : undefined;
    if (value === undefined || value === null || value === '') continue;
    if (is(value)) return { value, file };
    throw new SessionFault('invalid_params', `In the settings file ${file}, ${path.join('.')} must be ${kind}.`);
  }
  return undefined;
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
