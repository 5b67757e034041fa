import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from './agent.ts';
import { Daemon } from './daemon.ts';
import { Home } from './home.ts';
import { FakeModel } from './model/server.ts';
import { type Launch, Program } from './program.ts';
import { SWITCH } from './names.ts';
import { listening, serveLine } from './serve.ts';
import type { Shared } from './shared.ts';
import type { Findings } from './suite.ts';
import { NotSaid } from './verdicts.ts';

/** What is judged. */
export interface Target {
  /** The agent's program and arguments; empty where only a daemon is judged. */
  readonly command: readonly string[];
  /** A daemon that runs, or the shell command that starts one. */
  readonly daemon?: { readonly url: string } | { readonly serve: string };
  /** Added to the environment of what is started; `{{openai}}`, `{{gemini}}`, `{{anthropic}}` are the model's addresses. */
  readonly env: Readonly<Record<string, string>>;
  /** A folder that is copied into every HOME. */
  readonly home?: string;
}

/** Times, in ms. */
export interface Waits {
  /** How long one wait may take. */
  readonly patience: number;
  /** How long a process lives on before a crash: some write down what they say a little after they said it. */
  readonly thinking: number;
}

export interface AgentOptions {
  /** Params of `initialize` besides the usual; null for no `initialize` at all. */
  readonly initialize?: object | null;
  readonly home?: Home;
  readonly env?: Readonly<Record<string, string>>;
  /** Without the switch that restores questions; skips the check where the command does not bear it. */
  readonly switchedOff?: boolean;
}

export interface ServeOptions {
  readonly home?: Home;
  readonly env?: Readonly<Record<string, string>>;
  /** Further arguments. */
  readonly args?: readonly string[];
  /** Without the switch that restores questions; skips the check where the command does not bear it. */
  readonly switchedOff?: boolean;
}

/** Everything that one check may use. What it starts is ended with it. */
export class Context {
  readonly model: FakeModel;
  /** The HOME of the agents that it starts, unless it names another. */
  readonly home: Home;
  readonly options: Waits;
  /** What the agent turned out to be. */
  readonly findings: Findings;
  /** What is judged. */
  readonly target: Target;
  readonly #shared: Shared | undefined;
  readonly #owned: (() => Promise<void>)[] = [];
  #closed = false;

  private constructor(target: Target, options: Waits, more: More, model: FakeModel, home: Home) {
    this.target = target;
    this.findings = more.findings ?? NOTHING_YET;
    this.#shared = more.shared;
    this.options = options;
    this.model = model;
    this.home = home;
    this.own(() => home.remove());
    this.own(() => model.close());
  }

  static async open(target: Target, options: Waits, more: More = {}): Promise<Context> {
    const [model, home] = await Promise.all([FakeModel.start(options.patience), Home.make(target.home)]);
    await home.configure();
    return new Context(target, options, more, model, home);
  }

  /** How long one wait may take, in ms. */
  get patience(): number {
    return this.options.patience;
  }

  /**
   * Starts the agent, and initializes it unless told otherwise. It runs where the kit runs, as its command may name files
   * from there; its sessions get a folder of their own.
   */
  async agent(options: AgentOptions = {}): Promise<Agent> {
    const home = options.home ?? this.home;
    const program = await this.start({
      command: options.switchedOff ? this.#withoutSwitch() : this.target.command,
      cwd: process.cwd(),
      env: this.environment(home, options.env),
    });
    const agent = new Agent(program, home, this.patience);
    if (options.initialize !== null) await agent.initialize(options.initialize, START_PATIENCE * this.patience);
    return agent;
  }

  /** Kills an agent or a daemon with SIGKILL, after a time in which it could write down what it had said. */
  async crash(one: Agent | Daemon): Promise<void> {
    if (one.program?.exit === undefined) await pause(this.options.thinking);
    await one.kill();
  }

  /** Starts a daemon of the check's own, in its workspace; skips the check where the kit cannot start one. */
  async serve({ home = this.home, env, args = [], switchedOff = false }: ServeOptions = {}): Promise<Daemon> {
    const { daemon } = this.target;
    if (daemon === undefined || !('serve' in daemon)) return this.skip('the kit did not start the daemon');
    const template = switchedOff ? daemon.serve.replace(SWITCH, '') : daemon.serve;
    if (switchedOff && template === daemon.serve) this.skip(`the command has no ${SWITCH} that could be left out`);
    const line = await serveLine(template, args);
    const program = await this.start({ command: line.command, cwd: home.cwd, env: this.environment(home, env) });
    const patience = START_PATIENCE * this.patience;
    const found = await listening(program, line.url, patience);
    const served = new Daemon({ ...found, program, cwd: home.cwd }, this.patience);
    this.own(() => served.kill());
    return served;
  }

  /** What the checks of a run share of a daemon. */
  get shared(): Shared {
    return this.#shared ?? this.skip('there is no daemon');
  }

  /** Starts any program, which is ended with the check. */
  async start(launch: Launch): Promise<Program> {
    if (this.#closed) this.skip('the check is over');
    const program = new Program(launch);
    this.own(() => program.kill());
    await program.started;
    return program;
  }

  /** A further HOME, removed with the check; with `empty` nothing is in it. */
  async freshHome({ empty = false } = {}): Promise<Home> {
    const home = await Home.make(empty ? undefined : this.target.home);
    this.own(() => home.remove());
    if (!empty) await home.configure();
    return home;
  }

  /** The environment of a program: little of the kit's own, the model's addresses, what the user gave. */
  environment(home: Home, more: Readonly<Record<string, string>> = {}): Record<string, string> {
    const inherited = KEPT.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
    const own = { HOME: home.path, USERPROFILE: home.path, XDG_CONFIG_HOME: `${home.path}/.config`, NO_COLOR: '1' };
    const given = Object.entries(this.target.env).map(([name, value]) => [name, this.#filled(value)]);
    return {
      ...Object.fromEntries(inherited),
      ...own,
      // Without it qwen-code starts itself once more, and a kill would not reach the agent.
      QWEN_CODE_NO_RELAUNCH: 'true',
      ...this.model.env,
      ...Object.fromEntries(given),
      ...more,
    };
  }

  /** Has this done when the check is over, last come first. */
  own(release: () => Promise<void>): void {
    this.#owned.push(release);
  }

  /** Says that the check cannot tell; nothing after it is run. */
  skip(reason: string): never {
    throw new NotSaid('skipped', reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const release of this.#owned.splice(0).reverse()) await release().catch(() => {});
  }

  #withoutSwitch(): string[] {
    const command = this.target.command.filter((argument) => argument !== SWITCH);
    if (command.length === this.target.command.length) this.skip(`the command has no ${SWITCH} that could be left out`);
    return command;
  }

  #filled(value: string): string {
    return value
      .replaceAll('{{openai}}', `${this.model.url}/v1`)
      .replaceAll('{{gemini}}', this.model.url)
      .replaceAll('{{anthropic}}', this.model.url);
  }
}

interface More {
  /** What is known of the agent. */
  readonly findings?: Findings;
  readonly shared?: Shared;
}

const NOTHING_YET: Findings = { initialized: undefined, tools: [], lacks: new Map() };

const KEPT = [
  'PATH',
  'TMPDIR',
  'TEMP',
  'TMP',
  'LANG',
  'LC_ALL',
  'SystemRoot',
  'ComSpec',
  'PATHEXT',
  'NODE_EXTRA_CA_CERTS',
];

/** A program that loads much may need longer to its first answer than to any later one. */
const START_PATIENCE = 3;
