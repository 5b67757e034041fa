import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type ComparedReport, comparisonPage } from '../../scripts/comparison-page.mjs';
import { tempFolder } from '../support/temp.ts';
import { CLI, NODE_22, OUR_CLI, PACKAGE_ROOT, type Whose } from './programs.ts';

/** Where `npm run comparison` wants the page; without it the reference is asked a sample, as it takes its time. */
const PAGE = process.env['QWEN_ACP_COMPARISON'];
const SWITCH = '--restore-ask-user-question';
/** What each is started with besides; a busy machine may take long to start the reference's child. */
const SERVE: Readonly<Record<Whose, string>> = { ours: '--auth-type gemini', reference: '--no-web' };
const ACP: Readonly<Record<Whose, readonly string[]>> = { ours: ['--auth-type', 'gemini'], reference: [] };
/** In ms. The whole comparison starts some hundreds of processes of the reference. */
const [SAMPLED, WHOLE] = [600_000, 2_700_000];

const SAMPLE = [
  ...['ACP-INIT-1', 'ACP-CALL-1', 'ACP-CALL-4', 'ACP-SESSION-5', 'ACP-PROMPT-2', 'ACP-CANCEL-1', 'ACP-END-1'],
  ...['RESTORE-LOAD-2', 'RESTORE-ASK-3', 'RESTORE-DECLINE-1', 'RESTORE-UNATTENDED-1', 'RESTORE-CONTINUE-4'],
  ...['DAEMON-SESSION-6', 'DAEMON-PROMPT-2', 'DAEMON-ASK-1', 'DAEMON-ASK-3', 'DAEMON-VOTE-4', 'DAEMON-VOTE-13'],
  ...['DAEMON-LOAD-1', 'DAEMON-LOAD-2', 'DAEMON-LOAD-4', 'DAEMON-LOAD-13', 'DAEMON-GUARD-6', 'DAEMON-STOP-1'],
];

/** Nothing may leave the machine, and what the reference asks the model besides a turn would only take time. */
const SETTINGS = {
  security: { auth: { selectedType: 'openai' } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { enableAutoUpdate: false },
  memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
  ui: { enableFollowupSuggestions: false },
};

/** Runs the kit against one's child and daemon, on the same Node; resolves with its report when it has ended. */
async function judge(whose: Whose, ...args: string[]): Promise<ComparedReport> {
  const file = join(tempFolder(), 'report.json');
  const serve = `${NODE_22} ${CLI[whose]} serve ${SERVE[whose]} --initialize-timeout-ms 60000 ${SWITCH}`;
  const kit = spawn(
    process.execPath,
    [
      ...[OUR_CLI, 'conformance', '--restore', '--timeout', '30', '--think', '2000', '--jobs', '4', '--json', file],
      // By it the script that runs these tests finds what is left behind.
      ...['--env', `QWEN_ACP_INTEROP_RUN=${process.env['QWEN_ACP_INTEROP_RUN'] ?? 'by hand'}`],
      ...['--home', tempFolder({ '.qwen/settings.json': JSON.stringify(SETTINGS) })],
      ...[...args, '--serve', serve, '--', NODE_22, CLI[whose], '--acp', ...ACP[whose], SWITCH],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let said = '';
  kit.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(kit, 'close');
  // 2: it could not be judged.
  expect([0, 1], said).toContain(code);
  return JSON.parse(readFileSync(file, 'utf8'));
}

const lacking = (report: ComparedReport) =>
  report.rows.filter(({ status }) => status !== 'pass').map(({ id, status, reason }) => `${id} ${status}: ${reason}`);

/** The verdicts on the page that is committed: ours and the reference's, by the id of the check. */
function verdictsOnPage(): Map<string, readonly string[]> {
  const page = readFileSync(join(PACKAGE_ROOT, 'docs/COMPARISON.md'), 'utf8');
  const rows = page.matchAll(
    /^\| ([A-Z]+-[A-Z]+-\d+)(?: `better`)? \| .* \| (?:must|should) \| ([^|]+) \| ([^|]+) \|$/gm,
  );
  return new Map([...rows].map(([, id = '', ours = '', reference = '']) => [id, [ours, reference]]));
}

test(
  'our child and our daemon pass every check, and the reference has the verdicts that the page about it says',
  async () => {
    const ours = await judge('ours');
    // It advertises every session method, so none is left to be refused.
    expect(lacking(ours).filter((line) => !line.startsWith('ACP-INIT-6 '))).toEqual([]);
    const reference = await judge('reference', ...(PAGE === undefined ? ['--only', SAMPLE.join()] : []));
    if (PAGE !== undefined) {
      const sides = [['qwen-acp', ours] as const, ['qwen-code 0.24.4', reference] as const];
      writeFileSync(PAGE, comparisonPage(sides));
    }
    const page = verdictsOnPage();
    expect([...page.keys()], 'npm run comparison writes it anew').toEqual(ours.rows.map(({ id }) => id));
    const said = (rows: ComparedReport['rows']) => rows.map(({ id, status }) => `${id} ${status}`);
    const onPage = reference.rows.map(({ id }) => `${id} ${page.get(id)?.[1]}`);
    expect(said(reference.rows)).toEqual(onPage);
  },
  PAGE === undefined ? SAMPLED : WHOLE,
);
