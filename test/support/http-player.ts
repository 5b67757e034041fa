import { readFileSync } from 'node:fs';
import { Daemon, type DaemonPlace, daemonPlace, type EventReader, type HttpAnswer } from './daemon.ts';
import { CWD, RECORDED_SCRIPT } from './peer.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies and events of every form are compared
type Json = any;

/** One line of a recording: an exchange, an event of a stream, or what was done to the daemon. */
type Line =
  | { readonly dir: 'note'; readonly note: string; readonly argv?: readonly string[] }
  | { readonly dir: 'http'; readonly request: Json; readonly response: Json }
  | { readonly dir: 'sse-open'; readonly path: string; readonly status: number; readonly ct: string }
  | { readonly dir: 'sse'; readonly raw: string; readonly data?: Json }
  | { readonly dir: 'sse-end' };

/** A recorded exchange beside ours, as far as the two are compared. */
export interface PlayedExchange {
  readonly request: string;
  readonly recorded: Json;
  readonly ours: Json;
}

export interface PlayedHttp {
  readonly exchanges: readonly PlayedExchange[];
  /** The events of each daemon's life, in order of their numbers; each only once, however many streams had it. */
  readonly events: readonly { readonly recorded: readonly Json[]; readonly ours: readonly Json[] }[];
}

/** Where our daemon answers otherwise than the reference's, and how the play goes on from there. */
export interface Deviation {
  /** Of which exchanges, by their request's `METHOD /path` (ids as `:id`) and body. */
  readonly when: (
    request: { readonly method: string; readonly path: string; readonly body: Json },
    nth: number,
  ) => boolean;
  /** What we answer, in place of what was recorded; gets the recorded, comparable answer. */
  readonly instead: (recorded: Json) => Json;
  /** Ends a question that was recorded as answered and still waits with us. */
  readonly thenDecline?: true;
}

const IDS = /^(client_)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Of each agent's own making, or left out of the recordings. */
const OWN_EVENTS = ['followup_suggestion'];

const SCRIPT = {
  rules: RECORDED_SCRIPT.rules.map((rule) =>
    JSON.parse(JSON.stringify(rule).replace('about Red', 'warm').replace('about Blue', 'cold')),
  ),
};

/**
 * Sends a recording's requests to real daemons with real children, which are started and ended as recorded. `resumed` are
 * the streams, from 0, that send the last load's event number, which is not in the recordings.
 */
export async function playHttp(
  name: string,
  deviations: readonly Deviation[] = [],
  resumed: readonly number[] = [],
): Promise<PlayedHttp> {
  const player = new Player(daemonPlace(), deviations, resumed);
  for (const line of recordedHttp(name)) await player.step(line);
  await player.end();
  return { exchanges: player.exchanges, events: player.lives };
}

export function recordedHttp(name: string): Line[] {
  const file = new URL(`../fixtures/wire/http/${name}.jsonl`, import.meta.url);
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

class Player {
  readonly exchanges: PlayedExchange[] = [];
  readonly lives: { recorded: Json[]; ours: Json[] }[] = [];
  readonly #place: DaemonPlace;
  readonly #deviations: readonly Deviation[];
  /** Each recorded id, and the one that we have for it. */
  readonly #ids = new Map<string, string>();
  #daemon: Daemon | undefined;
  #readers: EventReader[] = [];
  #recorded: Json[] = [];
  /** How many events of a type were waited for in this daemon's life. */
  #milestones = new Map<string, number>();
  #strayed = false;
  readonly #resumed: readonly number[];
  #opened = 0;
  #loadedUpTo = 0;

  constructor(place: DaemonPlace, deviations: readonly Deviation[], resumed: readonly number[]) {
    this.#place = place;
    this.#deviations = deviations;
    this.#resumed = resumed;
  }

  async step(line: Line): Promise<void> {
    if (line.dir === 'note') await this.#note(line.note, line.argv);
    else if (line.dir === 'http') await this.#exchange(line.request, line.response);
    else if (line.dir === 'sse-open') await this.#open(line.path);
    else if (line.dir === 'sse' && line.data) await this.#event(line.data);
  }

  /** The last daemon of a recording is told to stop, and its streams end with it. */
  async end(): Promise<void> {
    await this.#finishLife('SIGTERM');
  }

  async #note(note: string, argv: readonly string[] | undefined): Promise<void> {
    if (note === 'start') {
      const restore = argv?.includes('--restore-ask-user-question') === true;
      const args = (argv ?? []).filter((arg) => arg === '--no-web');
      this.#daemon = await Daemon.start({ place: this.#place, restore, args, script: SCRIPT });
    } else if (note.startsWith('kill -9')) await this.#finishLife('SIGKILL');
    else if (note === 'signal SIGTERM') this.#daemon?.process.kill('SIGTERM');
    else if (note.startsWith('daemon exit') && note !== 'daemon exit null SIGKILL') await this.#finishLife('SIGTERM');
  }

  async #finishLife(signal: NodeJS.Signals): Promise<void> {
    if (this.#daemon === undefined) return;
    const { code } = await this.#daemon.kill(signal);
    if (signal === 'SIGTERM' && code !== 0) throw new Error(`the daemon ended with ${code}: ${this.#daemon.stderr}`);
    await Promise.all(this.#readers.map(({ ended }) => ended));
    const ours = byNumber(this.#readers.flatMap(({ seen }) => seen));
    const recorded = byNumber(this.#recorded);
    // Whoever comes late sees what waits (BT-11), which the reference shows nobody.
    const shown = new Set(recorded.filter(isRequest).map(({ data }) => this.#ids.get(data.requestId)));
    const known = ours.filter((event) => !isRequest(event) || shown.has(event.data.requestId));
    if (!this.#strayed)
      this.lives.push({ recorded: this.#comparableEvents(recorded), ours: this.#comparableEvents(known) });
    this.#daemon = undefined;
    this.#readers = [];
    this.#recorded = [];
    this.#milestones = new Map();
  }

  async #open(path: string): Promise<void> {
    const [, sessionId, query] = /^\/session\/([^/]+)\/events(\?.*)?$/.exec(path) ?? [];
    const headers = this.#resumed.includes(this.#opened) ? { 'last-event-id': String(this.#loadedUpTo) } : {};
    this.#opened += 1;
    const reader = await this.#live.events(this.#ours(sessionId), headers, query);
    this.#readers.push(reader);
  }

  async #event(event: Json): Promise<void> {
    if (!event.data || this.#recorded.some(({ id }) => id !== undefined && id === event.id)) return;
    this.#recorded.push(event);
    if (event.type === 'session_update' || event.id === undefined || this.#strayed) return;
    if (OWN_EVENTS.includes(event.type)) return;
    const nth = this.#milestones.get(event.type) ?? 0;
    this.#milestones.set(event.type, nth + 1);
    const ours = await this.#nth(event.type, nth);
    this.#learn(event, ours);
  }

  async #nth(type: string, nth: number): Promise<Json> {
    const [reader] = this.#readers;
    if (reader === undefined) throw new Error(`nobody listens for ${type}`);
    const of = () => byNumber(this.#readers.flatMap(({ seen }) => seen)).filter((event) => event.type === type);
    while (of().length <= nth) await reader.until((event) => event.type === type);
    return of()[nth];
  }

  async #exchange(request: Json, response: Json): Promise<void> {
    const { method, path } = request;
    const sent = this.#substitute(request.body);
    const url = this.#substitutePath(path);
    const ends = path.endsWith('/cancel') || (this.#strayed && path.includes('/permission/'));
    const ending = ends ? await this.#live.events(this.#session) : undefined;
    const ours = await this.#live.request(method, url, sent, this.#substitute(request.headers));
    this.#learn(response.body, ours.body);
    const shape = { method, path: path.replace(/[0-9a-f-]{36}/g, ':id'), body: request.body };
    const deviation = this.#deviations.find(({ when }) => when(shape, this.exchanges.length));
    const recorded = comparableAnswer(shape.path, response, this.#place);
    this.exchanges.push({
      request: `${shape.method} ${shape.path} ${JSON.stringify(shape.body)}`,
      recorded: deviation?.instead(structuredClone(recorded)) ?? recorded,
      ours: comparableAnswer(shape.path, ours, this.#place, response),
    });
    if (deviation?.thenDecline) await this.#decline(url);
    else if (ours.status < 300) await ending?.next('turn_complete');
    ending?.close();
    await this.#settled(method, shape.path, url, ours);
  }

  /** From here on, turns end otherwise than recorded. */
  async #decline(url: string): Promise<void> {
    this.#strayed = true;
    const events = await this.#live.events(this.#session);
    const { status } = await this.#live.post(url, { outcome: { outcome: 'cancelled' } });
    if (status !== 200) throw new Error(`the question did not wait any more: ${status}`);
    await events.next('turn_complete');
    events.close();
  }

  /** The recording waits half a second after a load, we for what is to come. */
  async #settled(method: string, path: string, url: string, { body }: HttpAnswer): Promise<void> {
    if (method !== 'POST') return;
    const sessionId = body?.sessionId ?? url.split('/')[2];
    if (path === '/session') this.#session = sessionId;
    if (/\/load$/.test(path)) this.#loadedUpTo = body.lastEventId;
    if (/\/(load|resume)$/.test(path) && body.hasActivePrompt) {
      const reader = await this.#live.events(sessionId);
      await reader.next('permission_request');
      reader.close();
    } else if (/\/prompt$/.test(path) && this.#strayed) {
      const reader = await this.#live.events(sessionId);
      const { data } = await reader.next('permission_request');
      reader.close();
      this.#asked = data.requestId;
    }
  }

  #asked: string | undefined;
  #session = '';

  get #live(): Daemon {
    if (this.#daemon === undefined) throw new Error('no daemon runs');
    return this.#daemon;
  }

  #ours(recorded: string | undefined): string {
    return this.#ids.get(recorded ?? '') ?? recorded ?? '';
  }

  #substitutePath(path: string): string {
    return path
      .split('/')
      .map((part, index, parts) => {
        const known = this.#ids.get(part);
        if (known === undefined && this.#strayed && this.#asked && parts[index - 1] === 'permission')
          return this.#asked;
        return known ?? part;
      })
      .join('/');
  }

  // biome-ignore lint/suspicious/noExplicitAny: any value with ids in it
  #substitute(value: any): any {
    if (typeof value === 'string') return value === CWD ? this.#place.cwd : (this.#ids.get(value) ?? value);
    if (Array.isArray(value)) return value.map((each) => this.#substitute(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.#substitute(each)]));
  }

  #learn(recorded: Json, ours: Json): void {
    if (typeof recorded === 'string' && typeof ours === 'string') {
      if (IDS.test(recorded) && IDS.test(ours)) this.#ids.set(recorded, ours);
    } else if (typeof recorded === 'object' && recorded !== null && typeof ours === 'object' && ours !== null) {
      for (const key of Object.keys(recorded)) this.#learn(recorded[key], ours[key]);
    }
  }

  #comparableEvents(events: readonly Json[]): Json[] {
    const kept = events.filter(
      ({ type, data }) => !OWN_EVENTS.includes(type) && data.update?.sessionUpdate !== 'available_commands_update',
    );
    return joined(kept).map((event) => comparable(event, this.#place));
  }
}

const isRequest = ({ type }: Json): boolean => type === 'permission_request';

/** Numbered events in order and once each, after the requests that only a late subscriber was shown; the others follow. */
function byNumber(events: readonly Json[]): Json[] {
  const numbered = new Map(events.filter(({ id }) => id !== undefined).map((event) => [event.id, event]));
  const requests = new Set([...numbered.values()].filter(isRequest).map(({ data }) => data.requestId));
  const others = events.filter(({ id }) => id === undefined);
  const late = new Map(others.filter(isRequest).map((event) => [event.data.requestId, event]));
  return [
    ...[...late.values()].filter(({ data }) => !requests.has(data.requestId)),
    ...[...numbered.values()].sort((a, b) => a.id - b.id),
    ...others.filter((event) => !isRequest(event)),
  ];
}

/** Joins streamed text: where it is cut is the model's matter. */
function joined(events: readonly Json[]): Json[] {
  const all: Json[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if (isText(event) && isText(last)) last.data.update.content.text += event.data.update.content.text;
    else all.push(structuredClone(event));
  }
  return all;
}

const isText = (event: Json): boolean =>
  event?.data?.update?.sessionUpdate === 'agent_message_chunk' && event.data.update._meta === undefined;

function comparableAnswer(path: string, answer: Json, place: DaemonPlace, recorded: Json = answer): Json {
  const { status, headers, body } = answer;
  const kept = { status, 'cache-control': headers['cache-control'], 'retry-after': headers['retry-after'] };
  // A page of Express, and what each daemon says of itself.
  if (typeof recorded.body === 'string' && status === 404) return kept;
  if (path === '/capabilities' || path === '/daemon/status') return { ...kept, keys: Object.keys(body).sort() };
  return { ...kept, body: comparable(body, place) };
}

/** How long a request to the model took is an update of the reference's own. */
const isShared = (event: Json): boolean => event?.data?._meta?.timing === undefined;

const SETTINGS = ['modes', 'models', 'configOptions'];
const NUMBERS = ['lastEventId', 'lastReplayedEventId', 'replayedCount', 'serverTimestamp', 'timestamp', 'durationMs'];
const MORE_NUMBERS = ['lastSeenAt', 'queuedAt', 'id'];

/** What we say more than the reference (DM-7, DM-9). */
const ADDED: Readonly<Record<string, readonly string[]>> = { permission_already_resolved: ['code', 'outcome'] };
/** The reference's ledger of prompts that a crash ended; settings and work in the background, which are each agent's own. */
const NOT_KEPT = ['promptTerminals', 'currentModelId', 'currentApprovalMode', 'hasRunningBackgroundTasks'];

/** Replaces what is made up, measured or worded by the one who says it. */
function comparable(value: Json, place: DaemonPlace, key = ''): Json {
  if (typeof value === 'number') return [...NUMBERS, ...MORE_NUMBERS].includes(key) ? '<number>' : value;
  if (typeof value === 'string') return comparableText(value.replaceAll(place.cwd, CWD), key);
  if (Array.isArray(value)) return value.filter(isShared).map((each) => comparable(each, place, key));
  if (typeof value !== 'object' || value === null) return value;
  if (isRequest(value)) {
    const { id: _, ...rest } = value;
    return { ...comparable({ ...rest, type: '' }, place), type: value.type };
  }
  if (value.type === 'permission_resolved' && value.data.outcome.outcome === 'cancelled') {
    const { reason: _, ...data } = value.data;
    return { ...comparable({ ...value, type: '' }, place), type: value.type, data: comparable(data, place) };
  }
  if (value.sessionUpdate === 'tool_call_update' && value.status === 'failed') {
    const { content: _, ...rest } = value;
    return { ...comparable({ ...rest, status: '' }, place), status: 'failed' };
  }
  const left = key === 'state' ? SETTINGS : (ADDED[value.code ?? value.type] ?? NOT_KEPT);
  const entries = Object.entries<Json>(value).filter(([name]) => !left.includes(name));
  return Object.fromEntries(entries.map(([name, each]) => [name, comparable(each, place, name)]));
}

function comparableText(text: string, key: string): string {
  if (IDS.test(text) || key === 'segmentId') return '<id>';
  // Whether the child reports work in the background is its own matter.
  if (key === 'activeWorkState') return text === 'active' ? text : '<quiet>';
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)) return '<time>';
  if (key === 'error' || key === 'message') return '<words>';
  if (key === 'displayName' && /^[0-9a-f]{8}$/.test(text)) return '<id>';
  if (key === 'toolCallId') return '<call>';
  const answered = text.replace(/(User has provided the following answers|The user answered):/g, '<answered>:');
  return answered.startsWith('TOOL RESULT ECHO: ') && !answered.includes('<answered>') ? 'TOOL RESULT ECHO' : answered;
}
