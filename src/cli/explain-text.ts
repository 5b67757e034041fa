import type { Explanation, LoadOutcome, Place } from '../session/explain.ts';

/** An explanation for a person, with a line feed at its end. Pure. */
export function explanationText(explanation: Explanation): string {
  const { session, decidedBy, rules, calls, loads, damage } = explanation;
  const lines = [
    `Session ${printable(session.sessionId ?? 'without records')}`,
    `  ${session.path}: ${session.bytes} bytes, ${session.records} records, ${session.inConversation} of them in the conversation`,
    '',
    `Verdict: ${verdict(explanation)}`,
    ...(decidedBy ? [`  decided by the ${where(decidedBy)}`] : []),
    '',
    'Rules',
    ...rules.map(({ id, rule, holds }) => `  ${holds === null ? '-  ' : holds ? 'yes' : 'no '} ${id} ${rule}`),
    ...calls.map(
      ({ id, name, fault }) => `      call ${printable(id)} of ${printable(name)}${fault ? `: ${fault}` : ''}`,
    ),
    '',
    'What a request would do (in a process where no turn of the session runs)',
    ...loads.map(loadLine),
    `  session/prompt: ${closes(explanation.promptCloses)}`,
    `  continue after a load that opened the question: ${continued(explanation.continue.opened)}`,
    `  continue after any other load: ${continued(explanation.continue.notOpened)}`,
    '',
    'History',
    `  compressions: ${places(explanation.history.compressions)}`,
    `  rewinds: ${places(explanation.history.rewinds)}`,
    `  abandoned branches: ${explanation.history.abandonedBranches}`,
    '',
    'Damage',
    ...damageLines(damage),
  ];
  return `${lines.join('\n')}\n`;
}

function verdict({ restorable, reason, callIds }: Explanation): string {
  return restorable ? `can be asked again (${list(callIds)})` : `cannot be asked again: ${reason}`;
}

function loadLine({ request, switchedOn, suppressed, asksAgain, showsFailed, reason }: LoadOutcome): string {
  const situation =
    request !== 'loadUpdates' ? `, switch ${switchedOn ? 'on' : 'off'}${suppressed ? ', suppressed' : ''}` : '';
  const does = asksAgain.length > 0 ? `leaves ${list(asksAgain)} open and gives the hint` : 'opens nothing';
  const shows = showsFailed.length > 0 ? `, shows ${list(showsFailed)} as failed` : '';
  return `  ${request}${situation}: ${does}${shows}${reason ? ` (${reason})` : ''}`;
}

function closes(ids: readonly string[]): string {
  return ids.length === 0 ? 'closes nothing' : `first closes ${list(ids)} on disk`;
}

function continued({ accepted, interruption }: Explanation['continue']['opened']): string {
  return `${accepted ? 'accepted' : 'not accepted'}, ${interruption}`;
}

function damageLines(damage: Explanation['damage']): string[] {
  const { corruptLines, gaps, duplicateUuids, oversizedLines, cycles, nulLines, crlfLines } = damage;
  const found = [
    damage.tornLastLine && 'the last line is torn',
    damage.noLastNewline && !damage.tornLastLine && 'the last line has no line feed',
    corruptLines.count > 0 &&
      `lines that cannot be read: ${corruptLines.count} (line ${corruptLines.lines.join(', ')})`,
    oversizedLines > 0 && `lines that are too long to be read: ${oversizedLines}`,
    gaps.count > 0 && `missing parents: ${gaps.count} (before the ${gaps.behind.map(where).join(', the ')})`,
    duplicateUuids.count > 0 && `uuids used again: ${duplicateUuids.count} (line ${duplicateUuids.lines.join(', ')})`,
    cycles > 0 && `loops of parents: ${cycles}`,
    nulLines > 0 && `lines with NUL bytes: ${nulLines}`,
    damage.byteOrderMark && 'a byte order mark',
    crlfLines > 0 && `lines that end in CRLF: ${crlfLines}`,
  ].filter((line) => line !== false);
  return found.length === 0 ? ['  none'] : found.map((line) => `  ${line}`);
}

const where = ({ type, uuid, line }: Place): string => `${printable(type)} record ${printable(uuid)} in line ${line}`;
const places = (all: readonly Place[]): string => (all.length === 0 ? 'none' : all.map(where).join(', '));
const list = (ids: readonly string[]): string => ids.map(printable).join(', ');

/** What a file says must not move a terminal's cursor. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (control) => `\\u${control.codePointAt(0)!.toString(16).padStart(4, '0')}`);
}
