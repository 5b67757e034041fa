import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const selftest = fileURLToPath(new URL('../../bench/selftest.mjs', import.meta.url));
const agentsFile = new URL('../../bench/agents.json', import.meta.url);

interface Agent {
  readonly name: string;
  readonly caughtBy?: string;
}

// The bench reads /proc.
describe.runIf(process.platform === 'linux')('the bench', () => {
  test('[BT-8] a correct agent passes its checks and every deliberately wrong one fails', () => {
    const { agents } = JSON.parse(readFileSync(agentsFile, 'utf8')) as { agents: Agent[] };
    const wrong = agents.filter((agent) => agent.caughtBy).map((agent) => `ok: ${agent.name} fails ${agent.caughtBy}`);
    const output = execFileSync(process.execPath, [selftest, '--quick'], { encoding: 'utf8', timeout: 60_000 });
    expect(wrong.length).toBeGreaterThan(5);
    expect(output.split('\n').filter((line) => line.startsWith('ok: wrong-'))).toEqual(
      wrong.map((line) => expect.stringContaining(line)),
    );
    expect(output).toContain('ok: ref-agent passes prompt');
  }, 60_000);
});
