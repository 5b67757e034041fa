import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { collectBulk, loadReplay } from '../../src/acp/bulk.ts';
import { readConversation } from '../../src/session/conversation.ts';
import { restorableAskUserQuestionCallIds } from '../../src/session/eligibility.ts';
import { pageOf } from '../../src/session/page.ts';
import type { LeftOpen } from '../../src/session/replay.ts';
import { readLastEntry, readTailConversation } from '../../src/session/tail.ts';
import { RESULT_NOT_IN_HISTORY } from '../../src/session/texts.ts';
import { openTranscript, type TranscriptFile } from '../../src/session/transcript-file.ts';
import { NOTHING, replay, replayedUpdates } from '../support/transcripts.ts';

const WIRE = join(import.meta.dirname, '../fixtures/wire');
const HINT = 'qwen.daemon.restoreAskUserQuestion';

interface Frame {
  readonly id?: number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: recordings have no type.
  readonly params?: any;
  // biome-ignore lint/suspicious/noExplicitAny: recordings have no type.
  readonly result?: any;
}

interface RecordedLoad {
  readonly title: string;
  readonly request: Frame;
  readonly updates: readonly unknown[];
  readonly result: NonNullable<Frame['result']>;
}

/** Texts are ours, and so is what a client need not be told: why a message of nobody's is there. */
function comparable(value: unknown): string {
  return JSON.stringify(value, (key, inner) => {
    if (key === 'source' || key === 'qwenDiscreteMessage') return undefined;
    return inner === RESULT_NOT_IN_HISTORY || /^Tool result missing from saved history/.test(inner)
      ? 'no result in history'
      : inner;
  });
}

/** The requests of these methods in a recording, each with the updates before its answer. */
function recordedLoads(name: string): RecordedLoad[] {
  const loads: RecordedLoad[] = [];
  const running = new Map<number, { request: Frame; updates: unknown[] }>();
  for (const line of readFileSync(join(WIRE, 'frames', name), 'utf8').split('\n')) {
    const frame: Frame | undefined = line === '' ? undefined : JSON.parse(line).frame;
    if (!frame) continue;
    if (frame.method === 'session/load' || frame.method === 'qwen/session/loadUpdates') {
      running.set(frame.id!, { request: frame, updates: [] });
    } else if (frame.method === 'session/update' && frame.params.update.sessionUpdate !== 'available_commands_update') {
      for (const { updates } of running.values()) updates.push(frame.params.update);
    } else if (frame.method === undefined && running.has(frame.id!)) {
      if (frame.result) loads.push({ title: `${name} #${frame.id}`, ...running.get(frame.id!)!, result: frame.result });
      running.delete(frame.id!);
    }
  }
  return loads;
}

const TRANSCRIPTS = readdirSync(join(WIRE, 'transcripts')).filter((name) => name.includes('dangling'));
const LOADS = readdirSync(join(WIRE, 'frames'))
  .filter((name) => !name.includes('.tap.'))
  .flatMap(recordedLoads)
  .filter(({ request }) => transcriptPath(request) !== undefined);

function transcriptPath({ params }: Frame): string | undefined {
  const name = TRANSCRIPTS.find((file) =>
    readFileSync(join(WIRE, 'transcripts', file), 'utf8').includes(`"sessionId":"${params.sessionId}"`),
  );
  return name && join(WIRE, 'transcripts', name);
}

async function opened<T>(request: Frame, use: (file: TranscriptFile) => Promise<T>): Promise<T> {
  const file = openTranscript(transcriptPath(request)!);
  try {
    return await use(file!);
  } finally {
    await file!.handle.close();
  }
}

/** What was open in the recording, found by the hint that its response bears. */
async function openIn(file: TranscriptFile, result: RecordedLoad['result']): Promise<LeftOpen> {
  if (result._meta?.[HINT] !== true) return NOTHING;
  const last = (await readLastEntry(await readConversation(file)))?.content ?? undefined;
  return { open: restorableAskUserQuestionCallIds(last ?? undefined), waiting: new Set() };
}

test('[ACP-3, ACP-10, ACP-11] the recordings hold loads of every kind', () => {
  const bulk = LOADS.filter(({ result }) => result._meta?.['qwen.session.loadReplay']).length;
  const loadUpdates = LOADS.filter(({ request }) => request.method !== 'session/load').length;
  expect({ bulk, loadUpdates, streamed: LOADS.length - bulk - loadUpdates }).toEqual({
    bulk: 9,
    loadUpdates: 2,
    streamed: 20,
  });
});

describe('[TR-1, ACP-3, LS-1, LS-2, LS-4, EL-3] a replay is the recorded one', () => {
  const streamed = LOADS.filter(({ request, result }) => {
    return request.method === 'session/load' && !result._meta?.['qwen.session.loadReplay'];
  });
  test.each(streamed)('$title', async ({ request, result, updates }) => {
    await opened(request, async (file) => {
      const left = await openIn(file, result);
      for (const rawResults of [true, false]) {
        const replayed = await replayedUpdates(await readConversation(file), left, { rawResults });
        expect(replayed.map(comparable)).toEqual(updates.map(comparable));
      }
    });
  });
});

describe('[ACP-11, LS-1, LS-3] a bulk replay is the recorded one', () => {
  const bulk = LOADS.filter(({ result }) => result._meta?.['qwen.session.loadReplay']);
  test.each(bulk)('$title', async ({ request, result }) => {
    await opened(request, async (file) => {
      const left = await openIn(file, result);
      const size = request.params._meta['qwen.session.loadReplayPageSize'] ?? 1_000;
      for (const conversation of [
        await readConversation(file),
        (await readTailConversation(file, size)).conversation,
      ]) {
        const page = pageOf(conversation, size);
        const first = (await conversation.recordAt(page.range.from))?.uuid;
        const updates = await collectBulk(replay(conversation, left, page.range), request.params.cwd);
        expect(comparable(loadReplay(updates, first, page.hasMore))).toBe(
          comparable(result._meta['qwen.session.loadReplay']),
        );
      }
    });
  });
});

describe('[ACP-10, LS-4] what loadUpdates shows is the recorded one', () => {
  const loads = LOADS.filter(({ request }) => request.method === 'qwen/session/loadUpdates');
  test.each(loads)('$title', async ({ request, result }) => {
    await opened(request, async (file) => {
      const { updates } = await collectBulk(replay(await readConversation(file), NOTHING), request.params.cwd);
      expect(comparable(updates)).toBe(comparable(result.updates));
    });
  });
});
