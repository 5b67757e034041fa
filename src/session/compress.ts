import { compressedContents, conversationText, planCompression, sizeOf, tokensOf } from './compression.ts';
import type { CommandOutput } from './ports.ts';
import { type RecordDraft, systemRecord } from './records.ts';
import * as texts from './texts.ts';
import { SUBTYPE } from './transcript.ts';
import type { TurnHost } from './turn-host.ts';

/** How an attempt to shorten a conversation ended; token counts are estimates. */
export type Compression =
  | {
      readonly kind: 'compressed';
      readonly before: number;
      readonly after: number;
      /** False where the provider has counted what was there before. */
      readonly estimated: boolean;
    }
  | { readonly kind: 'nothing_to_cut' }
  | { readonly kind: 'failed'; readonly reason: string };

/** The reference's numbers and words for one that succeeded. */
const COMPRESSED = 1;
type Trigger = 'manual' | 'token_limit';

/** UTF-16 units of a conversation that are read where the model's window is not known. */
const DEFAULT_TEXT = 400_000;
/** UTF-16 units of conversation for each token of the window: about three make one, and the answer needs room. */
const UNITS_PER_TOKEN = 2;

/**
 * Replaces the older part of the conversation by a summary of the model. Writes one record, or nothing. Rejects only where
 * that could not be written.
 */
export async function compress(host: TurnHost, trigger: Trigger): Promise<Compression> {
  const { chat, signal } = host;
  const { contents, lastPromptTokens } = await chat.history();
  const plan = planCompression(contents);
  if (plan === undefined) return { kind: 'nothing_to_cut' };
  let summary: string;
  try {
    summary = await summarize(host, conversationText(plan.older, textLimit(host)));
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
  if (signal.aborted) return { kind: 'failed', reason: 'it was stopped.' };
  if (summary === '') return { kind: 'failed', reason: 'the model gave no summary.' };
  const compressedHistory = compressedContents(summary, plan.kept);
  if (sizeOf(compressedHistory) >= sizeOf(contents)) return { kind: 'nothing_to_cut' };
  const before = lastPromptTokens ?? tokensOf(contents);
  // What the window holds beside the history stays: a difference of estimates is closer than an estimate.
  const left = tokensOf(compressedHistory);
  const after = Math.min(before, Math.max(left, before - tokensOf(contents) + left));
  const info = {
    originalTokenCount: before,
    newTokenCount: after,
    compressionStatus: COMPRESSED,
    triggerReason: trigger,
  };
  const record = systemRecord(chat.context, SUBTYPE.chatCompression, { info, compressedHistory });
  await chat.append([record], { durable: true });
  return { kind: 'compressed', before, after, estimated: lastPromptTokens === undefined };
}

/** Makes room in the model's context, and says what came of it; whether there is room now. */
export async function compressAutomatically(host: TurnHost): Promise<boolean> {
  const done = await compress(host, 'token_limit');
  if (done.kind === 'compressed') {
    await say(host, 'The conversation grew long, so its older part was replaced by a summary.\n\n', outputOf(done));
    return true;
  }
  if (done.kind === 'failed' && !host.signal.aborted) {
    await say(host, `The conversation grew long and could not be compressed: ${done.reason} It goes on as it is.\n\n`);
  }
  return false;
}

async function say(host: TurnHost, text: string, command: CommandOutput = {}): Promise<void> {
  await host.chat.append([commandResultRecord(host, '/compress', text, command)], { durable: false });
  await host.emit({ kind: 'text', text, thought: false, command });
}

/** What a client may know of a compression beside the words, in the reference's shape. */
export function outputOf(done: Compression): CommandOutput {
  if (done.kind !== 'compressed') return {};
  const { before, after, estimated } = done;
  return {
    contextCompression: {
      phase: 'done',
      originalTokenCount: before,
      newTokenCount: after,
      originalTokenCountIsEstimated: estimated,
      newTokenCountIsEstimated: true,
    },
  };
}

/** What a command printed, in the reference's form: shown by a replay, never sent to a model. */
export function commandResultRecord(
  { chat }: TurnHost,
  rawCommand: string,
  text: string,
  command: CommandOutput,
): RecordDraft {
  const outputHistoryItems = [{ type: 'assistant', text, ...command }];
  return systemRecord(chat.context, SUBTYPE.slashCommand, { phase: 'result', rawCommand, outputHistoryItems });
}

function textLimit({ model: { contextWindow } }: TurnHost): number {
  return contextWindow === undefined ? DEFAULT_TEXT : contextWindow * UNITS_PER_TOKEN;
}

/** As text, not as a history: no provider then minds calls without tools, and each result can be cut. */
async function summarize({ model, signal }: TurnHost, conversation: string): Promise<string> {
  const text = `${texts.SUMMARY_REQUEST}\n\n${conversation}`;
  const contents = [{ role: 'user', parts: [{ text }] }];
  const said: string[] = [];
  for await (const events of model.stream({
    contents,
    systemInstruction: texts.SUMMARY_INSTRUCTION,
    tools: [],
    signal,
  })) {
    for (const event of events) {
      if (event.kind === 'part' && event.part.text && event.part.thought !== true) said.push(event.part.text);
      if (event.kind === 'finish' && event.reason === 'refusal') return '';
    }
  }
  return said.join('').trim();
}
