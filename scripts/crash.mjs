// Kills the daemon, its agent process or both at every moment of a question's life, starts again and checks what a person
// was promised: an answer that was accepted is never asked for again and reaches the model, and every transcript is whole.
//
//   npm run crash -- --seed N --runs N
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildDist } from './build.mjs';
import { call, childrenOf, createPlace, isAlive, removePlace, startDaemon } from './crash-daemon.mjs';

/** `moment:n`, the n-th time that it comes; `vote_answered` is when the 200 is here, the others are held in the process. */
export const MOMENTS = [
  'question_created:1',
  'request_event_sent:1',
  'vote_received:1',
  'journal_written:1',
  'vote_answered:1',
  'reply_sent:1',
  'response_persisted:1',
  'model_called:2',
  'turn_ended:1',
];
export const KILLS = ['daemon', 'child', 'both'];
export const SHAPES = ['one', 'two', 'declined'];

const question = (header) => ({
  question: `Which ${header.toLowerCase()}?`,
  header,
  options: [
    { label: `${header} A`, description: 'the first' },
    { label: `${header} B`, description: 'the second' },
  ],
});
const asks = (header) => ({ call: 'ask_user_question', args: { questions: [question(header)] } });
const SCRIPT = {
  rules: [
    { when: { response: 'ask_user_question' }, steps: [{ text: 'So be it: {{response}}' }] },
    { when: { text: 'two' }, steps: [asks('Colour'), asks('Size')] },
    { steps: [asks('Colour')] },
  ],
};
const TIMEOUT_MS = 30_000;

/** Bundles with failpoints, into a folder that the caller removes; answers the executable. */
export async function buildForCrashes() {
  const dist = await mkdtemp(join(tmpdir(), 'qwen-acp-failpoints-'));
  await buildDist({ dist, failpoints: true });
  return { entry: join(dist, 'cli.js'), remove: () => rm(dist, { recursive: true, force: true }) };
}

/**
 * Plays one session through the `kills`, each `{moment, kill}`, and on to its end. Throws when a promise was broken; answers
 * which of the moments came.
 */
export async function crashRun(entry, { kills, shape = 'one' }) {
  const place = createPlace(SCRIPT);
  const run = new Run(place, entry, shape);
  try {
    for (const { moment, kill } of kills) await run.until(moment, kill);
    await run.until(undefined, undefined);
    run.judge();
    return run.reached;
  } catch (error) {
    throw new Error(`${JSON.stringify({ kills, shape })}: ${error.message}\n${run.daemon?.stderr() ?? ''}`, {
      cause: error,
    });
  } finally {
    await run.stop();
    removePlace(place);
  }
}

class Run {
  reached = [];
  /** The votes that were answered with 200, by the question's header. */
  accepted = new Set();
  #deadline = AbortSignal.timeout(TIMEOUT_MS);

  constructor(place, entry, shape) {
    Object.assign(this, { place, entry, shape });
  }

  get #held() {
    return join(this.place.failpoints, 'held');
  }

  /** Goes on with the session until the moment comes, and kills; or, if it does not come, until the session is done. */
  async until(moment, kill) {
    const afterAnswer = moment?.startsWith('vote_answered') ?? false;
    const wanted = join(this.place.failpoints, 'wanted');
    if (moment && !afterAnswer) writeFileSync(wanted, moment);
    else rmSync(wanted, { force: true });
    this.daemon ??= await startDaemon(this.place, this.entry);
    const came = await this.#goOn(afterAnswer);
    if (came === 'done') return;
    this.reached.push(moment);
    await this.#kill(kill);
  }

  async #goOn(stopAtAnswer) {
    let loaded = false;
    while (true) {
      this.#deadline.throwIfAborted();
      const step = await this.#orHeld(loaded ? this.#advance() : this.#enter());
      if (step.held) return 'held';
      if (step.value === 'answered' && stopAtAnswer) return 'answered';
      if (step.value === 'done') return 'done';
      // The agent process was killed and the daemon has noticed: the session is to be loaded again.
      loaded = step.value !== 'lost';
      await delay(3);
    }
  }

  /** Starts the session or loads it. */
  async #enter() {
    if (this.sessionId === undefined) {
      const created = this.#expect(await this.#call('POST', '/session', { cwd: this.place.cwd }), 200);
      this.sessionId = created.sessionId;
      this.clientId = created.clientId;
      return await this.#prompt();
    }
    const loaded = await this.#call('POST', `/session/${this.sessionId}/load`, { cwd: this.place.cwd });
    if (loaded?.status === 404 && this.#records().length === 0) {
      this.sessionId = undefined;
      return 'lost';
    }
    // The daemon may not have noticed yet that its agent process is gone.
    if (loaded === undefined || loaded.status >= 500) return 'lost';
    this.clientId = this.#expect(loaded, 200).clientId;
    return 'loaded';
  }

  async #prompt() {
    const prompt = [{ type: 'text', text: this.shape === 'two' ? 'ask two' : 'ask' }];
    const admitted = await this.#call('POST', `/session/${this.sessionId}/prompt`, { prompt });
    return admitted?.status === 202 ? 'prompted' : 'lost';
  }

  /** Answers what waits; continues what was interrupted; says when all is done. */
  async #advance() {
    const status = await this.#call('GET', `/session/${this.sessionId}/status`);
    if (status === undefined || status.status !== 200) return 'lost';
    const [waiting] = status.body.pendingInteractions;
    if (waiting) return await this.#vote(waiting);
    if (status.body.hasActivePrompt) return 'waiting';
    if (this.#isFinished()) return 'done';
    if (this.#records().length === 0) return await this.#prompt();
    const continued = await this.#call('POST', `/session/${this.sessionId}/continue`);
    if (continued === undefined || continued.status >= 400) return 'lost';
    if (continued.body.accepted) return 'continued';
    // A turn may just have begun or ended between the calls.
    this.idle = (this.idle ?? 0) + 1;
    if (this.idle > 300) throw new Error(`the session is stuck: ${JSON.stringify(continued.body)}`);
    return 'idle';
  }

  async #vote({ requestId, questions }) {
    const [{ header }] = questions;
    if (this.accepted.has(header)) throw new Error(`${header} was asked again after its answer had been accepted`);
    const declines = this.shape === 'declined';
    const vote = declines
      ? { outcome: { outcome: 'selected', optionId: 'cancel' } }
      : { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: `${header} B` } };
    const voted = await this.#call('POST', `/session/${this.sessionId}/permission/${requestId}`, vote);
    if (voted?.status !== 200) return 'unanswered';
    this.accepted.add(header);
    return 'answered';
  }

  async #kill(kill) {
    const { daemon } = this;
    const children = childrenOf(daemon.pid);
    const victims = kill === 'daemon' ? [daemon.pid] : kill === 'child' ? children : [daemon.pid, ...children];
    for (const pid of victims) process.kill(pid, 'SIGKILL');
    rmSync(this.#held, { force: true });
    // A vote whose answer was on its way when its connection was cut may still have been accepted or not.
    await this.pendingCall;
    if (kill === 'child') return;
    await daemon.exited;
    this.daemon = undefined;
    while (children.some(isAlive)) {
      this.#deadline.throwIfAborted();
      await delay(3);
    }
  }

  /** The step's value, or that a process holds. */
  async #orHeld(step) {
    this.pendingCall = step.then(
      () => {},
      () => {},
    );
    const settled = step.then((value) => ({ value }));
    settled.catch(() => {});
    while (true) {
      if (existsSync(this.#held)) return { held: true };
      this.#deadline.throwIfAborted();
      const first = await Promise.race([settled, delay(3)]);
      if (first !== undefined && !existsSync(this.#held)) return first;
    }
  }

  #call(method, path, body) {
    const clientId = this.clientId;
    return call(this.daemon, method, path, { body, signal: this.#deadline, ...(clientId && { clientId }) });
  }

  #expect(answer, status) {
    if (answer?.status !== status) throw new Error(`${status} was expected, not ${JSON.stringify(answer)}`);
    return answer.body;
  }

  #records() {
    const chats = join(this.place.home, 'projects', this.place.cwd.replace(/[^A-Za-z0-9]/g, '-'), 'chats');
    try {
      const text = readFileSync(join(chats, `${this.sessionId}.jsonl`), 'utf8');
      return text
        .slice(0, text.lastIndexOf('\n') + 1)
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  }

  #isFinished() {
    const messages = this.#records().filter(({ message }) => message);
    const last = messages.at(-1);
    if (this.shape === 'declined') return last?.type === 'tool_result';
    return last?.type === 'assistant' && !last.message.parts.some(({ functionCall }) => functionCall);
  }

  /** Throws unless the transcript is whole and holds every answer. */
  judge() {
    const records = this.#records();
    const byId = new Map(records.map((record) => [record.uuid, record]));
    if (byId.size !== records.length) throw new Error('two records have the same uuid');
    const chain = [];
    for (let record = records.at(-1); record; record = byId.get(record.parentUuid)) chain.unshift(record);
    if (chain.length !== records.length || chain[0].parentUuid !== null)
      throw new Error('the chain has a gap or a branch');
    const parts = chain.flatMap(({ message }) => message?.parts ?? []);
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    const responses = parts.flatMap(({ functionResponse }) => functionResponse ?? []);
    if (calls.length !== (this.shape === 'two' ? 2 : 1)) throw new Error(`the model called ${calls.length} times`);
    for (const { id, args } of calls) {
      const [{ header }] = args.questions;
      const own = responses.filter((response) => response.id === id);
      if (own.length !== 1) throw new Error(`${header} has ${own.length} responses`);
      const said = JSON.stringify(own[0].response);
      if (this.shape === 'declined' ? 'output' in own[0].response : !said.includes(`${header} B`)) {
        throw new Error(`the answer to ${header} is lost: ${said}`);
      }
    }
    const last = JSON.stringify(chain.filter(({ message }) => message).at(-1));
    if (this.shape !== 'declined' && !last.includes('Colour B')) throw new Error('the model has not seen the answer');
  }

  async stop() {
    if (!this.daemon) return;
    const children = childrenOf(this.daemon.pid);
    rmSync(this.#held, { force: true });
    for (const pid of [this.daemon.pid, ...children]) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    await this.daemon.exited;
  }
}

/** Small and repeatable: a linear congruential generator. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return (list) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)];
  };
}

async function main(argv) {
  const option = (name, otherwise) => Number(argv[argv.indexOf(name) + 1 || argv.length] ?? otherwise);
  const [seed, runs] = [option('--seed', Date.now() % 1e6), option('--runs', 100)];
  const pick = randomFrom(seed);
  const { entry, remove } = await buildForCrashes();
  const came = new Map();
  try {
    for (let index = 0; index < runs; index++) {
      const kills = Array.from({ length: pick([1, 1, 2, 3]) }, () => {
        const [moment] = pick(MOMENTS).split(':');
        return { moment: `${moment}:${pick([1, 1, 2])}`, kill: pick(KILLS) };
      });
      for (const moment of await crashRun(entry, { kills, shape: pick(SHAPES) })) {
        came.set(moment, (came.get(moment) ?? 0) + 1);
      }
    }
  } finally {
    await remove();
  }
  console.log(`seed ${seed}: ${runs} sessions, nothing lost, nobody asked twice. Killed at:`);
  for (const [moment, times] of [...came].sort()) console.log(`  ${moment.padEnd(24)} ${times}`);
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2));
}
