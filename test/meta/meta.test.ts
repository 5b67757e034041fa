import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cancelledPermissionMeta,
  daemonInitializeMeta,
  externalMeta,
  loadRequestMeta,
  newSessionRequestMeta,
  promptRequestMeta,
  readLoadReplay,
  takeRestoreHint,
} from '../../src/meta/daemon.ts';
import * as key from '../../src/meta/keys.ts';
import {
  initializeResultMeta,
  loadResponseMeta,
  promptResponseMeta,
  questionMeta,
  readInitializeMeta,
  readListMeta,
  readLoadMeta,
  readNewSessionMeta,
  readPermissionReplyMeta,
  readPromptMeta,
  readQuestionMeta,
} from '../../src/meta/meta.ts';

type Frame = {
  readonly method?: string;
  readonly id?: unknown;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
};

const FRAMES = new URL('../fixtures/wire/frames/', import.meta.url);

/** Every recorded `_meta` of one kind of message. */
function recorded(pick: (frame: Frame, method: string | undefined) => unknown): unknown[] {
  return readdirSync(FRAMES).flatMap((name) => {
    const asked = new Map<string, string>();
    return readFileSync(new URL(name, FRAMES), 'utf8')
      .split('\n')
      .flatMap((line) => {
        const { frame, dir } = line === '' ? {} : (JSON.parse(line) as { frame?: Frame; dir?: string });
        if (!frame || !dir) return [];
        if (frame.method) asked.set(`${dir} ${frame.id}`, frame.method);
        const picked = pick(frame, frame.method ?? asked.get(`${dir.split('->').reverse().join('->')} ${frame.id}`));
        return picked === undefined ? [] : [picked];
      });
  });
}

const JUNK: readonly unknown[] = [
  undefined,
  null,
  'text',
  5,
  true,
  [],
  [key.RESTORE_ASK_USER_QUESTION],
  {},
  Object.create({ [key.RESTORE_ASK_USER_QUESTION]: true, [key.SUPPRESS_RESTORE_ASK_USER_QUESTION]: true }),
  JSON.parse(`{"__proto__": {"${key.RESTORE_ASK_USER_QUESTION}": true, "${key.CONTINUE_LAST_TURN}": true}}`),
];

describe('flags', () => {
  test.each([true, false, 'true', 1, {}, [], null, undefined])(
    '[LS-2, RS-1] %j counts only if it is the boolean true',
    (value) => {
      const expected = value === true;
      expect(readLoadMeta({ [key.SUPPRESS_RESTORE_ASK_USER_QUESTION]: value }).suppressRestore).toBe(expected);
      expect(readPromptMeta({ [key.RESTORE_ASK_USER_QUESTION]: value }).restore).toBe(expected);
      expect(readPromptMeta({ [key.CONTINUE_LAST_TURN]: value }).continueLastTurn).toBe(expected);
      expect(takeRestoreHint({ [key.RESTORE_ASK_USER_QUESTION]: value }).restorable).toBe(expected);
    },
  );

  test.each(JUNK.map((meta) => [meta]))('[LS-2, ACP-4] %j is as no _meta at all', (meta) => {
    expect(readLoadMeta(meta)).toEqual({ suppressRestore: false, replay: { mode: 'stream' } });
    expect(readPromptMeta(meta)).toEqual({ restore: false, continueLastTurn: false });
    expect(readPermissionReplyMeta(meta)).toEqual({});
    expect(readNewSessionMeta(meta)).toEqual({});
    expect(readInitializeMeta(meta)).toEqual({ channelLiveness: false });
    expect(readQuestionMeta(meta)).toBeUndefined();
    expect(takeRestoreHint(meta).restorable).toBe(false);
    expect(readLoadReplay(meta)).toBeUndefined();
    expect(externalMeta(meta)).toEqual({});
  });

  test('[ACP-4] no reader throws, whatever the values are', () => {
    const names = Object.values(key).flat();
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 })), (meta) => {
        for (const read of [
          readLoadMeta,
          readPromptMeta,
          readPermissionReplyMeta,
          readNewSessionMeta,
          readInitializeMeta,
        ]) {
          expect(read(meta)).toBeTypeOf('object');
        }
        takeRestoreHint(meta);
        readLoadReplay(meta);
        externalMeta(meta);
      }),
    );
  });
});

describe('the load', () => {
  test.each([
    [{ [key.LOAD_REPLAY_MODE]: 'bulk' }, { mode: 'bulk' }],
    [
      { [key.LOAD_REPLAY_MODE]: 'bulk', [key.LOAD_REPLAY_PAGE_SIZE]: 3 },
      { mode: 'bulk', pageSize: 3 },
    ],
    [{ [key.LOAD_REPLAY_MODE]: 'bulk', [key.LOAD_REPLAY_PAGE_SIZE]: 0 }, { mode: 'bulk' }],
    [{ [key.LOAD_REPLAY_MODE]: 'bulk', [key.LOAD_REPLAY_PAGE_SIZE]: '3' }, { mode: 'bulk' }],
    [{ [key.LOAD_REPLAY_MODE]: 'bulk', [key.LOAD_REPLAY_PAGE_SIZE]: 1.5 }, { mode: 'bulk' }],
    [{ [key.LOAD_REPLAY_MODE]: 'other', [key.LOAD_REPLAY_PAGE_SIZE]: 3 }, { mode: 'stream' }],
  ])('[ACP-11] %j asks for %j', (meta, replay) => {
    expect(readLoadMeta(meta).replay).toStrictEqual(replay);
  });

  test('[LS-1, LS-2] the hint is true or absent, and each recorded response is built key by key', () => {
    expect(loadResponseMeta({ open: false })).toEqual({ hasRunningBackgroundTasks: false });
    const responses = recorded(({ result }, method) =>
      method === 'session/load' || method === 'session/resume' ? result?.['_meta'] : undefined,
    ).filter((meta) => typeof meta === 'object' && meta !== null && 'hasRunningBackgroundTasks' in meta);
    expect(responses.length).toBeGreaterThan(20);
    for (const meta of responses) {
      const { restorable } = takeRestoreHint(meta);
      const replay = readLoadReplay(meta)?.envelope;
      const ours = loadResponseMeta({ open: restorable, ...(replay && { replay: replay as never }) });
      expect(JSON.stringify(ours)).toBe(JSON.stringify(meta));
    }
  });

  test('[ACP-11, DM-4] each recorded request of the daemon is ours, and is read back', () => {
    const requests = recorded(({ method, params }) => (method === 'session/load' ? params?.['_meta'] : undefined));
    expect(requests.length).toBeGreaterThan(5);
    for (const meta of requests) {
      const { suppressRestore, replay } = readLoadMeta(meta);
      const pageSize = replay.mode === 'bulk' && replay.pageSize !== undefined && { pageSize: replay.pageSize };
      expect(loadRequestMeta({ suppressRestore, bulk: replay.mode === 'bulk', ...pageSize })).toEqual(meta);
    }
    expect(loadRequestMeta({ suppressRestore: false, bulk: false })).toBeUndefined();
    expect(readLoadMeta(loadRequestMeta({ suppressRestore: true, bulk: true, pageSize: 7 }))).toEqual({
      suppressRestore: true,
      replay: { mode: 'bulk', pageSize: 7 },
    });
  });

  test.each([5, 'text', {}, { updates: 'all' }, { updates: { length: 1 } }])(
    '[ACP-11] %j in the response of a load is no replay',
    (replay) => expect(readLoadReplay({ [key.LOAD_REPLAY]: replay })).toBeUndefined(),
  );

  test('[DM-3] the hint is taken off, the rest is left', () => {
    expect(takeRestoreHint({ a: 1, [key.RESTORE_ASK_USER_QUESTION]: true })).toEqual({
      restorable: true,
      rest: { a: 1 },
    });
  });
});

describe('the prompt', () => {
  test('[RS-1, DM-3] each recorded restore prompt of the daemon is ours, and is read back', () => {
    const prompts = recorded(({ method, params }) =>
      method === 'session/prompt' ? params?.['_meta'] : undefined,
    ).filter((meta) => readPromptMeta(meta).restore && readPromptMeta(meta).invocation);
    expect(prompts.length).toBeGreaterThan(2);
    for (const meta of prompts) {
      const { sessionId } = (meta as Record<string, { sessionId: string }>)[key.INVOCATION]!;
      const { promptId, originatorClientId } = readPromptMeta(meta).invocation as {
        promptId: string;
        originatorClientId: string;
      };
      expect(promptRequestMeta('restore', { sessionId, promptId, originatorClientId })).toEqual(meta);
    }
  });

  test('[RS-8] an ordinary prompt and a continue differ in their keys', () => {
    const prompt = { sessionId: 's', promptId: 'p' };
    expect(readPromptMeta(promptRequestMeta('ordinary', prompt))).toEqual({
      restore: false,
      continueLastTurn: false,
      invocation: { promptId: 'p' },
    });
    expect(readPromptMeta(promptRequestMeta('continue', prompt))).toMatchObject({
      restore: false,
      continueLastTurn: true,
    });
  });

  test('[TR-1] the branch point is the recorded one, or nothing', () => {
    const recordedMetas = recorded(({ result }, method) =>
      method === 'session/prompt' ? result?.['_meta'] : undefined,
    ).filter((meta) => typeof meta === 'object' && meta !== null && key.BRANCH_POINT in meta);
    expect(recordedMetas.length).toBeGreaterThan(3);
    for (const meta of recordedMetas) {
      const branchPoint = (meta as Record<string, { assistantRecordUuid: string; checkpointUuid: string }>)[
        key.BRANCH_POINT
      ]!;
      expect(promptResponseMeta({ branchPoint })).toEqual(meta);
    }
    expect(promptResponseMeta({})).toBeUndefined();
  });

  test('[ACP-7, ACP-12] that a turn was cancelled is told as recorded', () => {
    const metas = recorded(({ result }) => result?.['_meta']).filter(
      (meta) => key.PROMPT_CANCELLED in (meta as object),
    );
    expect(metas.length).toBeGreaterThan(0);
    for (const meta of metas) {
      const cancelled = (meta as Record<string, { cancelledAt: number; elapsedMs: number }>)[key.PROMPT_CANCELLED]!;
      expect(promptResponseMeta({ cancelled })).toEqual(meta);
    }
  });
});

describe('the permission request', () => {
  test('[RS-2] each recorded one is built and read back', () => {
    const metas = recorded(({ method, params }) =>
      method === 'session/request_permission'
        ? (params?.['toolCall'] as { _meta?: unknown } | undefined)?._meta
        : undefined,
    );
    expect(metas.length).toBeGreaterThan(20);
    for (const meta of metas) {
      const questions = readQuestionMeta(meta);
      expect(JSON.stringify(questionMeta('ask_user_question', questions ?? []))).toBe(JSON.stringify(meta));
    }
  });

  test.each([
    { [key.INTERACTION_KIND]: 'plan', [key.QUESTIONS]: [{}] },
    { [key.QUESTIONS]: [{}] },
    { [key.INTERACTION_KIND]: 'user_question', [key.QUESTIONS]: 'Which?' },
    { [key.INTERACTION_KIND]: 'user_question' },
  ])('[RS-2] %j asks no questions', (meta) => expect(readQuestionMeta(meta)).toBeUndefined());

  test.each(['timeout', 'session_closed', 'agent_cancelled'] as const)(
    '[RS-6] the reason %s is read back',
    (cancelReason) => {
      expect(readPermissionReplyMeta(cancelledPermissionMeta(cancelReason))).toEqual({ cancelReason });
    },
  );

  test('[RS-3] answers in _meta are handed on unchecked', () => {
    expect(readPermissionReplyMeta({ [key.ANSWERS]: ['x'] })).toEqual({ answers: ['x'] });
    expect(readPermissionReplyMeta({})).toStrictEqual({});
  });
});

describe('the handshake', () => {
  test('[ACP-12] keys are given when, and only when, they were asked for', () => {
    expect(initializeResultMeta(readInitializeMeta({}))).toBeUndefined();
    expect(initializeResultMeta(readInitializeMeta({ [key.CHANNEL_LIVENESS]: { v: 1 } }))).toEqual({
      [key.CHANNEL_LIVENESS]: { v: 1 },
    });
    expect(
      initializeResultMeta(
        readInitializeMeta({ [key.CHANNEL_LIVENESS]: { v: 2 }, [key.ACTIVE_WORK_HEARTBEAT]: { v: 1 } }),
      ),
    ).toBeUndefined();
  });

  test.each([
    [3, { size: 3 }],
    [0, {}],
    [1.5, {}],
    ['3', {}],
    [undefined, {}],
  ])('[ACP-2] a list of %j sessions is read as %j', (size, expected) => {
    expect(readListMeta({ [key.LIST_SIZE]: size })).toStrictEqual(expected);
  });

  test("[ACP-12] the recorded daemon's request gives the recorded answer", () => {
    const asked = recorded(({ method, params }) => (method === 'initialize' ? params?.['_meta'] : undefined));
    const [given] = recorded(({ result }, method) => (method === 'initialize' ? result?.['_meta'] : undefined)).filter(
      (meta) => !(key.CHANNEL_STARTUP_PROFILE in (meta as object)),
    );
    expect(asked.length).toBeGreaterThan(5);
    const { externalToolGuard } = readInitializeMeta(given);
    for (const meta of asked) {
      expect(initializeResultMeta({ ...readInitializeMeta(meta), externalToolGuard: externalToolGuard ?? '' })).toEqual(
        given,
      );
    }
  });

  test.each([{ v: 2 }, { intervalMs: 0 }, { intervalMs: undefined }, { categories: 'all' }, { categories: undefined }])(
    '[ACP-12] a heartbeat with %o is none',
    (wrong) => {
      const sound = { v: 1, intervalMs: 5, categories: ['agent', 5, 'shell'] };
      expect(readInitializeMeta({ [key.ACTIVE_WORK_HEARTBEAT]: { ...sound, ...wrong } })).toEqual({
        channelLiveness: false,
      });
      expect(readInitializeMeta({ [key.ACTIVE_WORK_HEARTBEAT]: sound }).activeWorkHeartbeat).toEqual({
        v: 1,
        intervalMs: 5,
        categories: ['agent', 'shell'],
      });
    },
  );

  test('[ACP-12] what our daemon asks for is understood', () => {
    expect(readInitializeMeta(daemonInitializeMeta(15_000))).toMatchObject({
      channelLiveness: true,
      activeWorkHeartbeat: { v: 1, intervalMs: 15_000 },
    });
    expect(readNewSessionMeta(newSessionRequestMeta({ sessionId: 's', deadlineMs: 1 }))).toEqual({ sessionId: 's' });
  });

  test('[DM-13] our daemon asks for what the recorded one does, but for the start-up profile', () => {
    const asked = recorded(({ method, params }) => (method === 'initialize' ? params?.['_meta'] : undefined));
    expect(asked.length).toBeGreaterThan(5);
    for (const meta of asked as Record<string, unknown>[]) {
      const { [key.CHANNEL_STARTUP_PROFILE]: _, ...wanted } = meta;
      const { intervalMs } = wanted[key.ACTIVE_WORK_HEARTBEAT] as { intervalMs: number };
      expect(daemonInitializeMeta(intervalMs, wanted[key.PRIVATE_PARENT_CAPABILITY] as string)).toStrictEqual(wanted);
      const { [key.PRIVATE_PARENT_CAPABILITY]: __, ...withoutCapability } = wanted;
      expect(daemonInitializeMeta(intervalMs)).toStrictEqual(withoutCapability);
    }
    const created = recorded(({ method, params }) => (method === 'session/new' ? params?.['_meta'] : undefined));
    expect(created.length).toBeGreaterThan(2);
    for (const meta of created as Record<string, number>[]) {
      const deadlineMs = meta[key.SESSION_INITIALIZATION_DEADLINE_MS]!;
      expect(newSessionRequestMeta({ deadlineMs })).toStrictEqual(meta);
    }
  });

  test.each(['', 5, null, ['s'], {}])('[ACP-4, ACP-12] %j where a text is expected is as if it were absent', (junk) => {
    const invocation = { promptId: junk, originatorClientId: junk };
    expect(readNewSessionMeta({ [key.SESSION_ID]: junk })).toStrictEqual({});
    expect(readPermissionReplyMeta({ [key.PERMISSION_CANCEL_REASON]: junk })).toStrictEqual({});
    expect(readInitializeMeta({ [key.EXTERNAL_TOOL_GUARD_READY]: junk })).toStrictEqual({ channelLiveness: false });
    expect(readPromptMeta({ [key.INVOCATION]: invocation }).invocation).toStrictEqual({});
  });
});

test('[DM-5] of an outside _meta only trace context passes', () => {
  const own = Object.fromEntries(
    Object.values(key)
      .flat()
      .map((name) => [name, true]),
  );
  const trace = { traceparent: '00-1-2-01', tracestate: 'a=b', baggage: 'c=d' };
  expect(externalMeta({ ...own, other: 'x', ...trace })).toEqual(trace);
  expect(externalMeta({ traceparent: { nested: true } })).toEqual({});
});
