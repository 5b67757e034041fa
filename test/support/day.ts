import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk';
import { expect, onTestFinished, vi } from 'vitest';
import { DayModel, type Message, type Wire } from './day-model.ts';
import { type DayTurn, dayScript, RAN } from './day-script.ts';
import { bundleProgram, stdioServer } from './mcp.ts';
import { type Asked, DECLINE, type Peer, RESTORE, submit } from './peer.ts';
import { processesWith } from './processes.ts';
import { tempFolder } from './temp.ts';

// biome-ignore lint/suspicious/noExplicitAny: updates of every form
type Json = any;

/** Where a day is spent: a project, and a model that knows the script. */
export interface DayPlace {
  readonly cwd: string;
  readonly model: DayModel;
}

export async function dayPlace(wire: Wire): Promise<DayPlace> {
  const cwd = realpathSync(tempFolder({ 'README.md': '# The day\n' }));
  const rounds = dayScript(cwd).map(({ name, rounds: batches = [] }) => [name, batches] as const);
  const model = await DayModel.start(wire, new Map(rounds));
  onTestFinished(() => model.close());
  return { cwd, model };
}

/** A whole day with one agent, which is killed and started again in the middle. Checks every turn; answers the session. */
export async function spendDay(
  { cwd, model }: DayPlace,
  start: () => Promise<Peer>,
): Promise<{ sessionId: string; peer: Peer }> {
  const server = stdioServer(bundleProgram('mcp-stdio', tempFolder()));
  const first = await start();
  const { sessionId } = await first.request('session/new', { cwd, mcpServers: [server] });
  const day = new Day(first, sessionId, cwd, model, server, start);
  for (const turn of dayScript(cwd)) await day.turn(turn);
  expect(readFileSync(join(cwd, 'ran.txt'), 'utf8')).toBe(RAN);
  expectHistories(model);
  return { sessionId, peer: day.peer };
}

class Day {
  peer: Peer;
  readonly #sessionId: string;
  readonly #cwd: string;
  readonly #model: DayModel;
  readonly #server: McpServer;
  readonly #start: () => Promise<Peer>;
  #asked = 0;
  #permit: DayTurn['permit'];
  #questions: Asked[] = [];
  #onQuestion: () => void = () => {};

  constructor(
    peer: Peer,
    sessionId: string,
    cwd: string,
    model: DayModel,
    server: McpServer,
    start: () => Promise<Peer>,
  ) {
    this.peer = peer;
    this.#sessionId = sessionId;
    this.#cwd = cwd;
    this.#model = model;
    this.#server = server;
    this.#start = start;
    this.#attend();
  }

  async turn(turn: ReturnType<typeof dayScript>[number]): Promise<void> {
    const { name, event } = turn;
    this.#asked = 0;
    this.#permit = turn.permit;
    const requests = this.#model.requests.length;
    let from = this.peer.allUpdates(this.#sessionId).length;
    if (event === 'full') this.#model.full = true;
    if (event === 'user edits') writeFileSync(join(this.#cwd, 'notes.md'), '# Notes\nby hand\n');
    if (event === 'auto-edit') await this.#request('session/set_mode', { modeId: 'auto-edit' });
    const prompt = { prompt: [{ type: 'text', text: turn.say }] };
    let ending = this.#request('session/prompt', prompt);
    if (event === 'cancel') await this.#cancel(from);
    if (event === 'kill') {
      ending.catch(() => {});
      ({ ending, from } = await this.#killAndLoad());
    }
    if (turn.answer !== undefined) (await this.#question()).answer(submit({ 0: turn.answer }));
    const { stopReason } = await ending;
    expect(stopReason, name).toBe(event === 'cancel' ? 'cancelled' : 'end_turn');
    const updates = this.peer.allUpdates(this.#sessionId).slice(from) as Json[];
    this.#seen(turn, updates);
    this.#disk(turn, updates);
    const compressions = event === 'full' || event === 'compressed' ? 1 : 0;
    const declined = turn.permit === 'reject' || event === 'cancel' ? 0 : 1;
    const expected = turn.say.startsWith('/') ? compressions : (turn.rounds?.length ?? 0) + declined + compressions;
    expect(this.#model.requests.length - requests, `${name}: requests`).toBe(expected);
    if (event !== 'kill') this.#usage(name, updates, requests);
    await this.#noOrphans(name);
  }

  #request(method: string, params: object): Promise<Json> {
    return this.peer.request(method, { sessionId: this.#sessionId, ...params });
  }

  /** Answers whatever permission is asked for; questions are kept. */
  #attend(): void {
    this.peer.always((asked) => {
      if (asked.params.toolCall._meta?.['toolName'] === 'ask_user_question') {
        this.#questions.push(asked);
        this.#onQuestion();
        return;
      }
      this.#asked++;
      if (this.#permit === 'reject') return asked.answer(DECLINE);
      const kind = this.#permit === 'always' ? 'allow_always' : 'allow_once';
      const option = asked.params.options.find((offered) => offered.kind === kind);
      asked.answer({ outcome: { outcome: 'selected', optionId: option?.optionId } });
    });
  }

  async #question(): Promise<Asked> {
    if (this.#questions.length === 0) await new Promise<void>((resolve) => (this.#onQuestion = resolve));
    return this.#questions.shift() as Asked;
  }

  async #cancel(from: number): Promise<void> {
    await this.peer.until(() => JSON.stringify(this.peer.updates(this.#sessionId).slice(from)).includes('sleeping\\n'));
    await this.peer.notify('session/cancel', { sessionId: this.#sessionId });
  }

  /** The process is killed while the question hangs; the next one asks it again. */
  async #killAndLoad(): Promise<{ ending: Promise<Json>; from: number }> {
    const first = await this.#question();
    const before = this.peer;
    await before.kill();
    await vi.waitUntil(() => this.#processes(before).length === 0, { timeout: 3_000, interval: 10 });
    this.peer = await this.#start();
    this.#attend();
    const params = { cwd: this.#cwd, mcpServers: [this.#server] };
    const loaded = await this.#request('session/load', params);
    expect(loaded._meta[RESTORE]).toBe(true);
    expect(shownOf(this.peer, this.#sessionId)).toEqual(shownOf(before, this.#sessionId));
    const from = this.peer.allUpdates(this.#sessionId).length;
    const ending = this.peer.restore(this.#sessionId);
    ending.catch(() => {});
    const again = await this.#question();
    expect(again.params.toolCall.toolCallId).toBe(first.params.toolCall.toolCallId);
    this.#questions.unshift(again);
    return { ending, from };
  }

  /** What the client was shown. */
  #seen({ name, cards = [], told, plan, asks = 0 }: DayTurn & { name: string }, updates: readonly Json[]): void {
    const said = textOf(updates);
    expect(statusesOf(updates), `${name}: cards, ${said}`).toEqual(cards);
    expect(this.#asked, `${name}: permissions`).toBe(asks);
    if (told) expect(said, name).toMatch(told);
    const plans = updates.filter(({ sessionUpdate }) => sessionUpdate === 'plan');
    expect(
      plans.map(({ entries }) => entries.map(({ status }: Json) => status)),
      name,
    ).toEqual(plan ? [plan] : []);
  }

  /** What is on the disk, and that each diff says so. */
  #disk({ name, files = {} }: DayTurn & { name: string }, updates: readonly Json[]): void {
    for (const [path, text] of Object.entries(files)) {
      expect(readFileSync(join(this.#cwd, path), 'utf8'), `${name}: ${path}`).toBe(text);
    }
    const done = updates.filter(
      ({ sessionUpdate, status }) => sessionUpdate === 'tool_call_update' && status === 'completed',
    );
    const diffs = done.flatMap(({ content = [] }) => content.filter(({ type }: Json) => type === 'diff'));
    for (const { path, newText } of diffs) expect(newText, name).toBe(readFileSync(path, 'utf8'));
    const changes = Object.keys(files).filter((path) =>
      updates.some(({ rawInput }) => rawInput?.file_path?.endsWith(path)),
    );
    expect(new Set(diffs.map(({ path }) => path)).size, `${name}: diffs`).toBe(changes.length);
  }

  /** What each answer of the model took is told once, in order. */
  #usage(name: string, updates: readonly Json[], requests: number): void {
    const used = this.#model.used.slice(requests).filter((tokens) => tokens !== undefined);
    const told = updates.flatMap(({ _meta }) => _meta?.usage?.inputTokens ?? []);
    expect(told, `${name}: usage`).toEqual(used);
    const contexts = updates.filter(({ sessionUpdate }) => sessionUpdate === 'usage_update');
    expect(
      contexts.map((update) => [update.used, update.size]),
      name,
    ).toEqual(used.map((each) => [each, this.#model.window]));
  }

  #processes(peer: Peer): number[] {
    return processesWith(`HOME=${peer.home.path}`);
  }

  /** The child and its MCP server, nothing that a command left. */
  async #noOrphans(name: string): Promise<void> {
    const count = () => this.#processes(this.peer).length;
    await vi.waitUntil(() => count() === 2, { timeout: 2_000, interval: 10 }).catch(() => {});
    expect(count(), `${name}: processes`).toBe(2);
  }
}

function statusesOf(updates: readonly Json[]): string[] {
  const statuses = new Map<string, string>();
  for (const { sessionUpdate, toolCallId, status } of updates) {
    if (/^tool_call/.test(sessionUpdate) && status) statuses.set(toolCallId, status);
  }
  return [...statuses.values()];
}

const textOf = (updates: readonly Json[]): string =>
  updates
    .flatMap(({ sessionUpdate, content }) => (sessionUpdate === 'agent_message_chunk' ? content.text : []))
    .join('');

/** What a client shows of a session, live or after a load: words, cards and plans. */
function shownOf(peer: Peer, sessionId: string): object {
  const updates = peer.updates(sessionId) as Json[];
  const plans = updates.flatMap(({ sessionUpdate, entries }) =>
    sessionUpdate === 'plan' ? [entries.map(({ content, status }: Json) => `${content}: ${status}`)] : [],
  );
  // A card that waits is pending live, and in progress after a load.
  const statuses = statusesOf(updates).map((status) => (status === 'pending' ? 'in_progress' : status));
  return { statuses, said: textOf(updates), plans };
}

/**
 * Every request is one that a provider takes: each call has one response, in the message after it, in call order; ids are
 * the provider's own; no call was made twice; and each request goes on from the one before, but for compressions.
 */
function expectHistories({ conversations, issued }: DayModel): void {
  expect(new Set(issued).size).toBe(issued.length);
  let compressions = 0;
  for (const [at, messages] of conversations.entries()) {
    expectPaired(messages, issued);
    const before = conversations[at - 1];
    if (before === undefined) continue;
    if (isSummary(messages) || isSummary(before)) compressions++;
    else expect(JSON.stringify(messages).startsWith(JSON.stringify(before).slice(0, -1)), `request ${at}`).toBe(true);
  }
  // Before the request for a summary and behind it.
  expect(compressions).toBe(4);
}

const isSummary = ([first, ...rest]: readonly Message[]): boolean =>
  rest.length === 0 && !/^T\d\d/.test(first?.text ?? '');

export function expectPaired(messages: readonly Message[], issued: readonly string[]): void {
  const called = messages.flatMap(({ calls }) => calls.map(({ id }) => id));
  expect(new Set(called).size).toBe(called.length);
  expect(called.filter((id) => !issued.includes(id))).toEqual([]);
  for (const [at, { results }] of messages.entries()) {
    expect(results.map(({ id }) => id)).toEqual(messages[at - 1]?.calls.map(({ id }) => id) ?? []);
  }
  expect(messages.at(-1)?.role).toBe('user');
}
