import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CWD, RESTORE } from '../support/peer.ts';
import { call, RawChild } from '../support/raw-child.ts';
import { asks, COLOUR } from '../support/sessions.ts';
import { SESSION, Writer } from '../support/transcripts.ts';

const MIB = 1 << 20;
const TURNS = 200;

/** About 30 MB, nearly all of it results of tools, with a question at its end. */
function giant(): string {
  const writer = new Writer();
  const output = 'line of a log\n'.repeat(11_000);
  for (let turn = 0; turn < TURNS; turn++) {
    writer
      .user(`u${turn}`, `ask ${turn}`)
      .calls(`a${turn}`, [`c${turn}`])
      .result(`r${turn}`, `c${turn}`, output);
  }
  writer.user('u', 'go').add('q', 'assistant', { message: { role: 'model', parts: [asks('call_1', COLOUR)] } });
  return writer.text();
}

/** A number of the process's bookkeeping: bytes read so far, or KiB of memory at most. */
function counted(pid: number | undefined, file: 'io' | 'status', name: 'rchar' | 'VmHWM'): number {
  return Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1]);
}

test.skipIf(!existsSync('/proc/self/io'))(
  '[TR-8, ACP-13, PF-3, K063] a giant session is listed by its ends and loaded as a stream: others are answered meanwhile, and memory stays small',
  { timeout: 60_000 },
  async () => {
    const child = new RawChild({ restore: true });
    const { pid } = child.child;
    const small = child.home.place('c0.dangling');
    writeFileSync(child.home.file(SESSION), giant());
    const size = child.home.bytes(SESSION).length;
    expect(size).toBeGreaterThan(25 * MIB);
    await child.call('warm', 'session/load', { sessionId: small, cwd: CWD, mcpServers: [] });

    const before = counted(pid, 'io', 'rchar');
    const { result } = await child.call('list', 'session/list', { cwd: CWD });
    expect(result.sessions).toHaveLength(2);
    expect(counted(pid, 'io', 'rchar') - before).toBeLessThan(MIB / 4);
    const resumed = await child.call('resume', 'session/resume', { sessionId: SESSION, cwd: CWD, mcpServers: [] });
    expect(resumed.result._meta[RESTORE]).toBe(true);
    // The records at its end are large ones.
    expect(counted(pid, 'io', 'rchar') - before).toBeLessThan(size / 3);

    const idle = counted(pid, 'status', 'VmHWM');
    child.send(call('load', 'session/load', { sessionId: SESSION, cwd: CWD, mcpServers: [] }));
    const meanwhile: number[] = [];
    let frames = 0;
    for (let frame = await child.next(); frame.id !== 'load'; frame = await child.next()) {
      const listed = typeof frame.id === 'number';
      if (listed) meanwhile.push(frames);
      // The next is asked for when the one before it was answered.
      if (frames === 0 || (listed && meanwhile.length < 4)) child.send(call(frames, 'session/list', { cwd: CWD }));
      frames += 1;
    }
    expect(frames).toBeGreaterThan(3 * TURNS);
    expect(meanwhile).toHaveLength(4);
    expect((counted(pid, 'status', 'VmHWM') - idle) / 1024).toBeLessThan(100);
  },
);
