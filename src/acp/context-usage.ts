import { tokensOf } from '../session/compression.ts';
import { ASK_USER_QUESTION_DECLARATION, systemInstruction } from '../session/question-tool.ts';
import { FULL } from '../session/room.ts';
import type { Session } from '../session/session.ts';
import type { JsonObject } from './params.ts';

/**
 * What takes how much of the model's context, in tokens, in the reference's shape. The whole is the provider's own count of
 * the last prompt, 0 before there is one; the parts are estimates, and what they do not explain is `unattributed`, the tools'
 * schemas for the most part: a status must not start tools. A window that is not known is 0.
 */
export async function contextUsage(session: Session, showDetails: boolean): Promise<JsonObject> {
  const [model, { contents, lastPromptTokens }] = await Promise.all([session.model(), session.chat.history()]);
  const window = model.contextWindow ?? 0;
  const counted = lastPromptTokens !== undefined;
  const parts = {
    systemPrompt: estimate(systemInstruction(session.cwd, true, session.mode)),
    builtinTools: estimate(JSON.stringify(ASK_USER_QUESTION_DECLARATION)),
  };
  const overhead = parts.systemPrompt + parts.builtinTools;
  const total = lastPromptTokens ?? 0;
  const messages = counted ? Math.min(tokensOf(contents), Math.max(0, total - overhead)) : 0;
  const compressedAt = Math.floor(FULL * window);
  const taken = counted ? total : overhead;
  const usage = {
    modelName: model.name,
    totalTokens: total,
    contextWindowSize: window,
    breakdown: {
      ...parts,
      mcpTools: 0,
      memoryFiles: 0,
      skills: 0,
      startupContext: 0,
      messages,
      unattributed: counted ? Math.max(0, total - overhead - messages) : 0,
      cachedTokens: 0,
      freeSpace: Math.max(0, compressedAt - taken),
      autocompactBuffer: window - compressedAt,
      thresholds: { warn: compressedAt, auto: compressedAt, hard: window, effectiveWindow: window },
      currentTier: window > 0 && taken > compressedAt ? 'auto' : 'safe',
    },
    builtinTools: [],
    mcpTools: [],
    memoryFiles: [],
    skills: [],
    isEstimated: !counted,
    showDetails,
  };
  const text = textOf(model.name, window, counted ? total : undefined);
  return { v: 1, sessionId: session.id, workspaceCwd: session.cwd, usage, formattedText: text };
}

/** About four UTF-16 units make a token. */
const estimate = (text: string): number => Math.ceil(text.length / 4);

function textOf(model: string, window: number, used: number | undefined): string {
  const size = window === 0 ? 'a context of unknown size' : `a context of ${window} tokens`;
  const share = window === 0 || used === undefined ? '' : ` (${Math.round((100 * used) / window)} %)`;
  const taken = used === undefined ? 'Nothing has been sent yet.' : `The last prompt took ${used} tokens${share}.`;
  return `## Context\n\n\`${model}\` has ${size}. ${taken}`;
}
