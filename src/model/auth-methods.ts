import type { AuthType } from '../session/ports.ts';

/** One entry of `initialize`'s `authMethods`, in the protocol's words. */
export interface AuthMethod {
  readonly id: AuthType;
  readonly name: string;
  readonly description: string;
}

/**
 * The ways to get a model. Every one is settled by the environment that this program was started with, so none is of
 * type terminal, whatever the client can do.
 */
export const AUTH_METHODS: readonly AuthMethod[] = [
  { id: 'gemini', name: 'Gemini API key', description: 'Reads the key from the variable GEMINI_API_KEY.' },
  {
    id: 'vertex-ai',
    name: 'Vertex AI',
    description: 'Reads GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or an API key from GOOGLE_API_KEY.',
  },
  { id: 'scripted', name: 'Scripted demo model', description: 'Plays a script; needs no key and no network.' },
];
