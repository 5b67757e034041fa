import type { Context } from '../context.ts';
import { CUES, SAID } from '../model/script.ts';
import { CONTINUE, RESTORE } from '../names.ts';
import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import type { Json } from '../wire.ts';
import { closing, core, expectStatus, isIdle, listen, nonce, stage, timesSaid, UUID } from './daemon-rows.ts';

async function savedIsListedAndLoaded(context: Context) {
  const { daemon, session } = await stage(context);
  await daemon.start(session, CUES.say);
  await daemon.idle(session.id);
  expectStatus(await daemon.delete(session), 204);
  expectStatus(await daemon.status(session.id), 404);
  const list = await daemon.get(`/workspace/${encodeURIComponent(daemon.cwd ?? '')}/sessions`);
  expect(JSON.stringify(list.body?.sessions ?? []).includes(session.id), 'it is not in the list', list);
  const loaded = await daemon.load(session.id, 'kit-loader');
  expectStatus(loaded, 200);
  const words = (loaded.body.compactedReplay ?? [])
    .map((event: Json) => event.data?.update?.content?.text ?? '')
    .join('');
  expect(words.includes(SAID.join('')), 'its history is not in the answer', loaded);
  const path = `/session/${session.id}/transcript`;
  const transcript = await daemon.get(path);
  expectStatus(transcript, 200);
  expect(transcript.text.includes('conformance kit'), 'the transcript does not have what was said', transcript);
}

async function resumeHasNoHistory(context: Context) {
  const { daemon, session } = await stage(context);
  await daemon.start(session, CUES.say);
  await daemon.idle(session.id);
  await daemon.delete(session);
  const resumed = await daemon.resume(session.id, 'kit-loader');
  expectStatus(resumed, 200);
  expect(!resumed.text.includes(SAID[0]?.trim() ?? ''), 'the answer has the history', resumed);
}

async function emptyPromptIs400(context: Context) {
  const { daemon, session } = await stage(context);
  for (const body of [{}, { prompt: [] }, { prompt: 'hello' }])
    expectStatus(await daemon.post(`/session/${session.id}/prompt`, body, session.clientId), 400);
}

async function turnIsTold(context: Context) {
  const { daemon, session } = await stage(context);
  const events = await listen(context, daemon, session.id);
  const admitted = await daemon.start(session, CUES.say);
  const { promptId, lastEventId, eventEpoch } = admitted.body;
  expect(promptId && eventEpoch && Number.isInteger(lastEventId), 'an id is missing', admitted);
  const end = await events.next('turn_complete');
  expectEqual([end.data.stopReason, end.data.promptId], ['end_turn', promptId], 'stopReason and promptId', end);
  expectEqual(events.said(promptId), SAID.join(''), 'what the agent said', end);
}

async function promptIsEchoed(context: Context) {
  const { daemon, session } = await stage(context);
  const events = await listen(context, daemon, session.id);
  const text = `${CUES.say} ${nonce()}`;
  await daemon.start(session, text);
  const fits = ({ data }: { data: Json }) => data?.update?.sessionUpdate === 'user_message_chunk';
  const echo = await events.next('session_update', { fits });
  expectEqual(echo.data.update.content.text, text, 'its text', echo);
}

async function cancelEnds(context: Context) {
  const { daemon, session, model } = await stage(context);
  const events = await listen(context, daemon, session.id);
  const word = nonce();
  await daemon.start(session, `${word} ${CUES.slowly}`);
  await events.next('session_update', { fits: ({ data }) => /word/.test(data?.update?.content?.text ?? '') });
  expectStatus(await daemon.post(`/session/${session.id}/cancel`, {}, session.clientId), 204);
  const end = await events.next('turn_complete');
  expectEqual(end.data.stopReason, 'cancelled', 'stopReason', end);
  expect(timesSaid(model, word) > 0, 'the model was not asked');
  await isIdle(daemon, session.id);
}

async function nothingToContinue(context: Context) {
  const { daemon, session } = await stage(context);
  await daemon.start(session, CUES.say);
  await daemon.idle(session.id);
  const answer = await daemon.post(`/session/${session.id}/continue`, {}, session.clientId);
  expectStatus(answer, 200);
  expectEqual([answer.body.accepted, answer.body.interruption], [false, 'none'], 'accepted and interruption', answer);
}

async function nothingIsSmuggled(context: Context) {
  const { daemon, session, model } = await stage(context);
  for (const key of [RESTORE, CONTINUE]) {
    const word = nonce();
    const answer = await daemon.prompt(session, `${CUES.say} ${word}`, { [key]: true });
    expectStatus(answer, 202);
    await daemon.idle(session.id);
    expectEqual(timesSaid(model, word), 1, `with ${key}, how often the model was given the prompt`, answer);
  }
}

async function branchIsItsOwn(context: Context) {
  const { daemon, session } = await stage(context);
  await daemon.start(session, CUES.say);
  await daemon.idle(session.id);
  const branch = await daemon.post(`/session/${session.id}/branch`, { name: 'kit' }, session.clientId);
  expectStatus(branch, 201);
  const { sessionId: id, clientId } = branch.body;
  closing(context, daemon, { id, clientId });
  expect(UUID.test(id) && id !== session.id, 'it has no id of its own', branch);
  const word = nonce();
  await daemon.start({ id, clientId }, `${CUES.say} ${word}`);
  await daemon.idle(id);
  const model = await context.shared.model();
  const request = model.requests.find(({ last }) => last.texts.some((text) => text.includes(word)));
  const told = request?.turns.some(({ role, texts }) => role === 'model' && texts.join('').includes(SAID.join('')));
  expect(told, 'the model is not told the history of the session that it branched from', branch);
}

export const PROMPTS: readonly Check[] = [
  ...core('daemon', ['PROMPT-1', 'DM-1', 'A prompt without content blocks is a 400.', emptyPromptIs400]),
  ...core(
    'talking',
    ['SESSION-15', 'DM-1', 'A closed session is listed, and loaded with its history.', savedIsListedAndLoaded],
    ['SESSION-16', 'DM-1', 'A resume answers without the history.', resumeHasNoHistory],
    ['SESSION-17', 'DM-1', 'A branch is a session of its own with the same history.', branchIsItsOwn],
    ['PROMPT-2', 'DM-1', 'A prompt is a 202, and its turn is told as events, to its end.', turnIsTold],
    ['PROMPT-3', 'DM-9', 'Every subscriber is told the prompt, too.', promptIsEchoed],
    ['PROMPT-4', 'DM-1', 'POST cancel ends the turn as cancelled.', cancelEnds],
    ['PROMPT-5', 'RS-8', 'There is nothing to continue after a finished turn.', nothingToContinue],
    ['PROMPT-6', 'DM-5', 'Keys that are not for clients do not reach the agent with a prompt.', nothingIsSmuggled],
  ),
];
