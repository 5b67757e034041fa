import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { userFolder } from '../settings.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/**
 * The variables that providers are configured by: those that this program was started with, then those of the user's `.env`
 * files, then those of the user's settings. Nothing of a workspace: it may come from anybody. An empty variable counts as unset.
 */
export function userEnv(env: Env, home: string, settings: Readonly<Record<string, string>>): Env {
  const files = [join(home, '.env'), join(userFolder({ env, home }), '.env')].map(readEnvFile);
  return Object.assign({}, settings, ...[...files, env].map(withoutEmpty));
}

function readEnvFile(file: string): Env {
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch {
    // Most people have none, and one that cannot be read sets nothing.
    return {};
  }
}

function withoutEmpty(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
}
