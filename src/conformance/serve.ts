import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from './http.ts';
import type { Program } from './program.ts';
import { expect, Unmet } from './verdicts.ts';

/** Stands for a free port in the command that starts a daemon. */
const PORT = '{port}';
/** Stands for the folder that the kit runs in; the daemon runs in its workspace. */
const HERE = '{here}';
/** In ms. */
const POLL = 20;

export interface ServeLine {
  /** What a shell runs. */
  readonly command: readonly string[];
  /** Where it will listen, if the command says so. */
  readonly url: string | undefined;
}

/** The command that starts a daemon on a free port of its own, with further arguments. */
export async function serveLine(template: string, args: readonly string[]): Promise<ServeLine> {
  const port = template.includes(PORT) ? await freePort() : undefined;
  const told = port === undefined ? [...args, '--port', '0'] : args;
  const line = [template.replaceAll(HERE, process.cwd()).replaceAll(PORT, String(port)), ...told].join(' ');
  // The daemon takes the shell's place, so that it is the one that gets signals.
  return {
    command: ['/bin/sh', '-c', `exec ${line}`],
    url: port === undefined ? undefined : `http://127.0.0.1:${port}`,
  };
}

/** Waits until a daemon answers; gives its address, and what it had printed. */
export async function listening(
  program: Program,
  known: string | undefined,
  patience: number,
): Promise<{ readonly url: string; readonly greeting: string }> {
  let greeting = '';
  program.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (greeting.length < MOST_GREETING) greeting += text;
  });
  const deadline = performance.now() + patience;
  for (;;) {
    const { exit, stderr } = program;
    const ending = exit && `${exit.signal ?? `exit code ${exit.code}`}${lastLine(stderr)}`;
    expect(exit === undefined, `the daemon ended: ${ending}`);
    const url = known ?? /https?:\/\/[^\s/"]+:\d+/.exec(greeting)?.[0];
    if (url !== undefined && (await isUp(url, patience))) return { url, greeting };
    if (performance.now() > deadline)
      throw new Unmet(`the daemon does not listen after ${patience / 1000} s${lastLine(stderr)}`);
    await pause(POLL);
  }
}

const MOST_GREETING = 65_536;

const lastLine = (text: string): string => {
  const last = text.trim().split('\n').at(-1) ?? '';
  return last === '' ? '' : `, saying: ${last}`;
};

/** Whether anything answers there, however. */
async function isUp(url: string, patience: number): Promise<boolean> {
  return await call(url, { method: 'GET', path: '/health' }, patience).then(
    () => true,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
