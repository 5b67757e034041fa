import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Home } from '../support/peer.ts';
import { processesWith } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { type ModelServer, startModel } from './model.ts';

// biome-ignore lint/suspicious/noExplicitAny: records and frames of every form
type Json = any;

export type Provider = keyof ModelServer['env'];

/** A user's home and a workspace, shared by the programs that run there one after the other. */
export class Site {
  readonly home = new Home();
  readonly cwd: string;
  readonly #modelEnv: Readonly<Record<string, string>>;

  /** `chosen` are the settings, and `modelEnv` the variables, that say which model is asked. */
  constructor(chosen: object, modelEnv: Readonly<Record<string, string>>, cwd = realpathSync(tempFolder())) {
    this.cwd = cwd;
    this.#modelEnv = modelEnv;
    const settings = {
      ...chosen,
      // Nothing here may leave the machine.
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      general: { enableAutoUpdate: false },
      // What it asks the model besides a turn would only take time.
      memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
      ui: { enableFollowupSuggestions: false },
    };
    mkdirSync(join(this.home.path, '.qwen'));
    writeFileSync(join(this.home.path, '.qwen/settings.json'), JSON.stringify(settings));
    onTestFinished(() => this.endProcesses());
  }

  /** All of the environment that a program gets here. */
  get env(): Record<string, string> {
    return {
      PATH: process.env['PATH'] ?? '',
      HOME: this.home.path,
      QWEN_HOME: join(this.home.path, '.qwen'),
      QWEN_CODE_NO_RELAUNCH: 'true',
      QWEN_ACP_INTEROP_RUN: process.env['QWEN_ACP_INTEROP_RUN'] ?? 'by hand',
      ...this.#modelEnv,
    };
  }

  /** The processes that were started here, by whomever, and still run. */
  processes(): number[] {
    return processesWith(`HOME=${this.home.path}`);
  }

  /** Kills them, each by its id. */
  endProcesses(): void {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended meanwhile.
      }
    }
  }

  /** The transcript of a session, in the place where both keep it. */
  file(sessionId: string): string {
    return join(
      this.home.path,
      '.qwen/projects',
      this.cwd.replace(/[^A-Za-z0-9]/g, '-'),
      'chats',
      `${sessionId}.jsonl`,
    );
  }

  text(sessionId: string): string {
    return existsSync(this.file(sessionId)) ? readFileSync(this.file(sessionId), 'utf8') : '';
  }

  records(sessionId: string): Json[] {
    return linesOf(this.text(sessionId));
  }
}

/** A site with a model that asks, echoes or falls silent as it is told. */
export class Place extends Site {
  readonly model: ModelServer;

  private constructor(model: ModelServer, provider: Provider) {
    super({ security: { auth: { selectedType: provider } } }, model.env[provider]);
    this.model = model;
  }

  static async make(provider: Provider = 'gemini'): Promise<Place> {
    const model = await startModel();
    onTestFinished(() => model.close());
    return new Place(model, provider);
  }
}

export const linesOf = (text: string): Json[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
