import type { AuthType } from '../session/ports.ts';

/** Where and how a model is asked; every value is settled. */
export interface Endpoint {
  readonly authType: AuthType;
  /** The model, as the provider names it. */
  readonly name: string;
  /** The key; undefined where none is needed. */
  readonly apiKey?: string;
  /** Sent as a bearer token, for Anthropic. */
  readonly authToken?: string;
  /** Undefined: the SDK's own. */
  readonly baseUrl?: string;
  /** The variable that holds the key. */
  readonly variable: string;
  /** Tokens. */
  readonly contextWindow?: number;
  /** Fields of the request's body, as the person set them: temperature, max_tokens and the like. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the provider may be silent. Milliseconds; 0 for ever. */
  readonly idleMs: number;
}

export const IDLE_MS = 300_000;

/** Whether an address is on this machine. */
export function isLoopback(url: string | undefined): boolean {
  const host = hostOf(url);
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host) || host.endsWith('.localhost');
}

/** The host of an address; empty where it is no URL. */
export function hostOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).hostname : '';
}
