import { once } from 'node:events';
import { existsSync, readFileSync, watch } from 'node:fs';
import { dirname, join } from 'node:path';
import { spawn } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Shell, ShellCommand, ShellResult } from '../../src/session/ports.ts';
import { commandScope } from '../../src/tools/command-scope.ts';
import { localShell } from '../../src/tools/local-shell.ts';
import { OutputBuffer } from '../../src/tools/output-buffer.ts';
import { RUN_SHELL_COMMAND } from '../../src/tools/run-shell-command.ts';
import { tempFolder } from '../support/temp.ts';
import { faultOf, faultOfCall, runTool, toolContext } from '../support/tools.ts';

const shell = localShell();
const { signal } = new AbortController();

function run(command: string, more: Partial<ShellCommand> = {}, abort = signal): Promise<ShellResult> {
  return shell.run({ callId: 'c', command, cwd: tempFolder(), timeoutMs: 30_000, ...more }, () => {}, abort);
}

/** Waits for a file that a command writes its pids to, a line each. */
async function pidsIn(path: string, count: number): Promise<number[]> {
  const watcher = watch(dirname(path));
  onTestFinished(() => watcher.close());
  for (;;) {
    const pids = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1).map(Number) : [];
    if (pids.length >= count) return pids;
    await once(watcher, 'change');
  }
}

/** A process that has ended but was not collected by its parent yet counts as gone. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return !existsSync('/proc/self/stat');
  }
}

/** A shell, a child of it and a grandchild, the last two deaf to SIGTERM; each tells its pid. */
const DEAF_FAMILY = `echo $$ >> pids
(trap '' TERM; sh -c 'echo $$ >> pids; trap "" TERM; while :; do sleep 1; done' & echo $BASHPID >> pids; while :; do sleep 1; done) &
wait`;

describe('the local shell', () => {
  test('[TL-1] tells how a command ended, and what it said in the order it said it', async () => {
    expect(await run('echo out; echo err >&2; echo out again; exit 3')).toEqual({
      exitCode: 3,
      signal: null,
      timedOut: false,
      output: 'out\nerr\nout again\n',
      truncated: false,
    });
    expect(await run('kill -9 $$')).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    expect(await run('if then')).toMatchObject({ exitCode: 2, output: expect.stringContaining('syntax error') });
  });

  test('[TL-1] a command has nothing on stdin, no terminal, its folder and this environment', async () => {
    const cwd = tempFolder({ 'here.txt': '' });
    process.env['QWEN_ACP_TEST'] = 'handed on';
    onTestFinished(() => void delete process.env['QWEN_ACP_TEST']);
    const { output } = await run(
      'cat; ls; test -t 0 || echo no terminal; (: < /dev/tty) 2>&1 | wc -l; echo $QWEN_ACP_TEST',
      { cwd },
    );
    expect(output.split('\n').map((line) => line.trim())).toEqual(['here.txt', 'no terminal', '1', 'handed on', '']);
    expect((await faultOf(() => run('true', { cwd: join(cwd, 'none') }))).type).toBe('shell_execute_error');
  });

  test('[TL-1] keeps the start and the end of a huge output', async () => {
    const { output, truncated, exitCode } = await run('yes start | head -c 30000000; echo; echo the end');
    expect([truncated, exitCode]).toEqual([true, 0]);
    expect(output.length).toBeLessThan(31_000);
    expect(output).toMatch(/^start\nstart\n[\s\S]*\[… \d+ characters left out …\][\s\S]*\nthe end\n$/);
  });

  test('[TL-1] tells what was said so far while the command runs', async () => {
    const cwd = tempFolder();
    const heard: string[] = [];
    await new Promise<void>((resolve, reject) => {
      const command = 'echo ä; while [ ! -e go ]; do sleep 0.02; done; echo done';
      const tell = (output: string) => {
        heard.push(output);
        if (heard.length === 1) run('touch go', { cwd }).catch(reject);
      };
      shell.run({ callId: 'c', command, cwd, timeoutMs: 30_000 }, tell, signal).then(() => resolve(), reject);
    });
    expect(heard[0]).toBe('ä\n');
  });

  test.each(['abort', 'timeout'])('[TL-1] on %s nothing of the group is left, however deaf', async (cause) => {
    const cwd = tempFolder();
    const controller = new AbortController();
    const running = run(DEAF_FAMILY, { cwd, timeoutMs: cause === 'timeout' ? 1500 : 60_000 }, controller.signal);
    const ended = running.then(
      (result) => result,
      (error: Error) => error.message,
    );
    const pids = await pidsIn(join(cwd, 'pids'), 3);
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    const started = performance.now();
    if (cause === 'abort') controller.abort(new Error('stopped'));
    const result = await ended;
    expect(pids.map(isAlive)).toEqual([false, false, false]);
    if (cause === 'abort') {
      expect(result).toBe('stopped');
      // The turn waits no longer than a second; a busy machine is given some more.
      expect(performance.now() - started).toBeLessThan(3000);
    } else expect(result).toMatchObject({ timedOut: true });
  });

  test('[TL-1] what a command leaves running ends with it', async () => {
    const cwd = tempFolder();
    const result = await run('sh -c "trap \'\' TERM; while :; do sleep 1; done" & echo $! > pids; echo started', {
      cwd,
    });
    expect(result).toMatchObject({ exitCode: 0, output: 'started\n' });
    expect((await pidsIn(join(cwd, 'pids'), 1)).map(isAlive)).toEqual([false]);
  });

  test('[TL-1] a process that left the group does not keep the command from ending', async () => {
    const cwd = tempFolder();
    const result = await run('setsid sh -c "echo \\$\\$ > pids; sleep 30" & while [ ! -s pids ]; do sleep 0.02; done', {
      cwd,
    });
    const [pid] = await pidsIn(join(cwd, 'pids'), 1);
    process.kill(pid as number, 'SIGKILL');
    expect(result.exitCode).toBe(0);
  });

  test('[TL-1] an abort before the start starts nothing, one during the start ends it', async () => {
    const cwd = tempFolder();
    await expect(run('touch started', { cwd }, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
    expect(existsSync(join(cwd, 'started'))).toBe(false);
    const controller = new AbortController();
    const early = run('sleep 60', { cwd }, controller.signal);
    controller.abort(new Error('stopped while it starts'));
    await expect(early).rejects.toThrow('stopped while it starts');
  });

  test('[TL-1] a program that exits takes its commands along', async () => {
    const cwd = tempFolder();
    const program = `
      import { localShell } from ${JSON.stringify(join(import.meta.dirname, '../../src/tools/local-shell.ts'))};
      process.on('message', () => process.exit(7));
      localShell().run({ callId: 'c', command: 'echo $$ > pids; exec sleep 60', cwd: ${JSON.stringify(cwd)}, timeoutMs: 60000 }, () => {}, new AbortController().signal);
    `;
    const { build } = await import('esbuild');
    const outfile = join(cwd, 'program.mjs');
    await build({
      stdin: { contents: program, resolveDir: cwd },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
    });
    const child = spawn(process.execPath, [outfile], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const [pid] = await pidsIn(join(cwd, 'pids'), 1);
    expect(isAlive(pid as number)).toBe(true);
    child.send('exit');
    expect(await once(child, 'exit')).toEqual([7, null]);
    await until(() => !isAlive(pid as number));
  });
});

/** For what the system does by itself and tells nobody. */
async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 5000;
  while (!holds()) {
    if (performance.now() > end) throw new Error('It never came true.');
    await new Promise(setImmediate);
  }
}

test('[TL-1] an output buffer keeps whole what fits, and both ends of what does not', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(20_000), { maxLength: 12 }), (sizes) => {
      const buffer = new OutputBuffer();
      let all = '';
      for (const [index, size] of sizes.entries()) {
        const text = String.fromCharCode(97 + index).repeat(size);
        all += text;
        buffer.push(text);
      }
      const text = buffer.text();
      expect(buffer.truncated).toBe(all.length > 30 * 1024);
      if (!buffer.truncated) expect(text).toBe(all);
      else {
        const [head = '', count = '', tail = ''] = text.split(/\n\[… (\d+) characters left out …\]\n/);
        expect(head.length + Number(count) + tail.length).toBe(all.length);
        expect([all.startsWith(head), all.endsWith(tail)]).toEqual([true, true]);
      }
    }),
  );
});

describe('run_shell_command', () => {
  test('[TL-1] tells model, person and transcript how a command ended', async () => {
    const cwd = tempFolder({ 'sub/x': '' });
    const context = toolContext(cwd);
    const ran = await runTool(
      RUN_SHELL_COMMAND,
      { command: 'printf "\\033[31mred\\033[0m\\n"; exit 3', description: 'try' },
      context,
    );
    expect(ran).toEqual({
      text: `Command exited with 3, in ${cwd}.\nOutput:\nred`,
      display: {
        type: 'shell_result',
        version: 1,
        directory: cwd,
        exitCode: 3,
        signal: null,
        pid: null,
        outcome: 'failed',
        outputFiles: [],
        output: 'red',
        text: 'red',
        error: null,
        notices: [],
        truncated: false,
      },
    });
    const killed = await runTool(RUN_SHELL_COMMAND, { command: 'kill -9 $$' }, context);
    expect(killed.display).toMatchObject({
      exitCode: null,
      signal: 9,
      outcome: 'failed',
      text: 'Command was ended by SIGKILL',
    });
    const quiet = await runTool(RUN_SHELL_COMMAND, { command: 'true', directory: 'sub' }, context);
    expect(quiet.text).toBe(`Command exited with 0, in ${cwd}/sub.\nOutput:\n(no output)`);
    expect(quiet.display).toMatchObject({ outcome: 'completed', text: '', directory: `${cwd}/sub` });
    const late = await runTool(RUN_SHELL_COMMAND, { command: 'echo a; sleep 60', timeout: 300 }, context);
    expect(late).toMatchObject({
      ok: false,
      errorType: 'execution_timeout',
      display: { outcome: 'timed_out', signal: 15, output: 'a' },
    });
    expect(late.text).toContain('ended after its timeout of 300 ms');
  });

  test('[TL-1] bounds what a client’s terminal brings, and hands on what is heard', async () => {
    const output = `${'x'.repeat(100_000)}end`;
    const terminal: Shell = {
      async run(_, heard) {
        heard('half\u001b[1m way');
        return { exitCode: 0, signal: null, timedOut: false, output, truncated: false };
      },
    };
    const shown: string[] = [];
    const context = toolContext(tempFolder(), { shell: terminal, progress: (text) => void shown.push(text) });
    const { text, display } = await runTool(RUN_SHELL_COMMAND, { command: 'big' }, context);
    expect([text.length < 34_000, text.endsWith('end'), shown]).toEqual([true, true, ['half way']]);
    expect(display).toMatchObject({ truncated: true });
  });

  test('[TL-1] refuses wrong arguments before anybody is asked', async () => {
    const context = toolContext(tempFolder({ 'a.txt': '' }));
    const cases = [
      [{}, 'invalid_tool_params'],
      [{ command: '  ' }, 'invalid_tool_params'],
      [{ command: 'a\0b' }, 'invalid_tool_params'],
      [{ command: 'x'.repeat(40_000) }, 'invalid_tool_params'],
      [{ command: 'true', timeout: 0 }, 'invalid_tool_params'],
      [{ command: 'true', timeout: 600_001 }, 'invalid_tool_params'],
      [{ command: 'true', is_background: true }, 'invalid_tool_params'],
      [{ command: 'true', is_background: 'no' }, 'invalid_tool_params'],
      [{ command: 'true', description: 7 }, 'invalid_tool_params'],
      [{ command: 'true', directory: 'none' }, 'shell_execute_error'],
      [{ command: 'true', directory: 'a.txt' }, 'shell_execute_error'],
    ] as const;
    for (const [args, type] of cases) {
      expect((await faultOfCall(RUN_SHELL_COMMAND, args, context)).type, JSON.stringify(args).slice(0, 60)).toBe(type);
    }
    expect((await RUN_SHELL_COMMAND.prepare({ command: 'ls', is_background: false }, context)).always?.label).toBe(
      'ls …',
    );
  });
});

describe('what "always allow" covers of a command', () => {
  test.each([
    ['git status', 'git status …'],
    ['git  status ', 'git status …'],
    ['git diff --stat src', 'git diff --stat …'],
    ['git commit -m "a message"', 'git commit -m …'],
    ['cat a.txt', 'cat …'],
    ['ls', 'ls …'],
    // Others are allowed as they stand.
    ['git push origin main', 'git push origin main'],
    ['git -c core.pager=x status', 'git -c core.pager=x status'],
    ['npm test', 'npm test'],
    ['rm -rf build', 'rm -rf build'],
    ['find . -name x -delete', 'find . -name x -delete'],
    ['bash -c "rm -rf /"', 'bash -c "rm -rf /"'],
    ['git diff *', 'git diff *'],
    ['/tmp/git status', '/tmp/git status'],
  ])('[TL-1] %s', (command, label) => {
    expect(commandScope(command)?.label).toBe(label);
  });

  test.each([
    'git status; rm -rf /',
    'git status && rm -rf /',
    'git status || rm',
    'git status | sh',
    'git status & rm x',
    'git status > .bashrc',
    'cat < /etc/passwd',
    'git status $(rm x)',
    'git status `rm x`',
    'git status\nrm -rf /',
    'git status\rrm',
    'cat <(rm x)',
    ['echo ', '{IFS}'].join('$'),
    'git status "$(rm x)"',
    "git status '",
    'git "status',
    'git\\ status',
    'PAGER=rm git status',
    'git status # x',
    'echo {a,b}',
    'echo %PATH%',
    'echo ^& rm',
    '!git',
    'git status\u00a0x',
    '',
  ])('[TL-1] nothing of %j', (command) => {
    expect(commandScope(command)).toBeUndefined();
  });

  test('[TL-1] what is allowed in one form is not in another', () => {
    const key = (command: string, folder?: string) => commandScope(command, folder)?.key;
    expect(key('git diff a')).toBe(key('git diff b c'));
    expect(key('git diff')).not.toBe(key('git diff --output=x'));
    expect(key('git diff')).not.toBe(key('git diff "--output=x"'));
    expect(key('git diff')).not.toBe(key('git show'));
    expect(key('git status')).not.toBe(key('git status', '/ws/sub'));
    expect(key('npm run a')).not.toBe(key('npm run b'));
    // The words, not how they are joined.
    expect(key('x "a b"')).not.toBe(key('x a b'));
    expect(key('cat')).not.toBe(key('"cat …"'));
    // A file of that name, and what the shell makes of it.
    expect(key("rm -r '~'")).not.toBe(key('rm -r ~'));
    expect(key('rm "*"')).not.toBe(key('rm *'));
    expect(key('git diff --output a')).not.toBe(key('git diff --output b'));
  });

  test('[TL-1] a command that shares the scope of another is one program with the same options', () => {
    const tail = fc.string({
      unit: fc.constantFrom(' ', 'a', '-', ';', '|', '&', '$', '(', ')', '`', '\n', '"', "'", '>', '=', '*', '\\'),
      maxLength: 8,
    });
    fc.assert(
      fc.property(tail, (text) => {
        const scope = commandScope(`git status ${text}`);
        if (scope?.key !== commandScope('git status')?.key) return;
        expect(text.trim()).not.toMatch(/[;|&$()`\n>\\*]/);
        expect(text).not.toMatch(/(^|\s)["']*-/);
      }),
      { numRuns: 2000 },
    );
  });
});
