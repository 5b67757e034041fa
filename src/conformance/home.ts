import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A HOME for one check, which agents share that are started one after another; with a folder to work in. */
export class Home {
  readonly path: string;
  /** An absolute path, as sessions want it. */
  readonly cwd: string;

  private constructor(path: string) {
    this.path = join(path, 'home');
    this.cwd = join(path, 'project');
  }

  /** `template`: a folder that is copied into it. */
  static async make(template?: string): Promise<Home> {
    const home = new Home(await realpath(await mkdtemp(join(tmpdir(), 'acp-conformance-'))));
    await mkdir(home.path);
    await mkdir(home.cwd);
    if (template !== undefined) await cp(template, home.path, { recursive: true });
    return home;
  }

  /** Puts in what qwen-code needs to take the kit's model without being asked; other agents do not look at it. */
  async configure(): Promise<void> {
    const folder = join(this.path, '.qwen');
    await mkdir(folder, { recursive: true });
    const settings = { security: { auth: { selectedType: 'openai' } } };
    await writeFile(join(folder, 'settings.json'), JSON.stringify(settings), { flag: 'wx' }).catch(() => {});
  }

  async remove(): Promise<void> {
    await rm(join(this.path, '..'), { recursive: true, force: true, maxRetries: 3 });
  }
}
