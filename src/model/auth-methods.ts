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
  {
    id: 'openai',
    name: 'OpenAI-compatible endpoint',
    description: 'Reads OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL; an endpoint on this machine needs no key.',
  },
  {
    id: 'anthropic',
    name: 'Anthropic API key',
    description: 'Reads ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_MODEL.',
  },
  { id: 'gemini', name: 'Gemini API key', description: 'Reads the key from the variable GEMINI_API_KEY.' },
  {
    id: 'vertex-ai',
    name: 'Vertex AI',
    description: 'Reads GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION, or an API key from GOOGLE_API_KEY.',
  },
  { id: 'scripted', name: 'Scripted demo model', description: 'Plays a script; needs no key and no network.' },
];
