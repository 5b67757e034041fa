import type { AnthropicDialect } from './anthropic-messages.ts';

/** What has to be known of a model before it is asked. */
export interface ClaudeTraits {
  /** Tokens of a reply. */
  readonly maxTokens: number;
  /** Undefined: the model is not asked to think. */
  readonly thinking?: { readonly type: string } & Readonly<Record<string, unknown>>;
  readonly thoughts: AnthropicDialect['thoughts'];
  /** Tokens. */
  readonly contextWindow?: number;
}

/** By the name's version: models from 3.7 think within a budget, those from 4.6 as much as they see fit. */
export function claudeTraits(name: string): ClaudeTraits {
  // Other models behind the same API: what they sign, if anything, goes back, and their servers know their own limits.
  if (!/claude/i.test(name)) return { maxTokens: 8192, thoughts: 'all' };
  const [, major = '99', minor = '0'] = /claude\D*?(\d)(?:[-.](\d))?(?!\d)/i.exec(name) ?? [];
  const version = Number(major) * 10 + Number(minor);
  const known = { thoughts: 'signed', contextWindow: 200_000 } as const;
  if (version < 37) return { ...known, maxTokens: version >= 35 ? 8192 : 4096 };
  const maxTokens = 32_000;
  if (version < 46) return { ...known, maxTokens, thinking: { type: 'enabled', budget_tokens: 16_000 } };
  return { ...known, maxTokens, thinking: { type: 'adaptive', display: 'summarized' } };
}
