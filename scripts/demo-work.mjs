// A day's work in small: the agent reads and changes a file after it was allowed to, asks a question, is killed, and goes on
// with the answer. What it had done is not done again. Fails loudly when a step is not as it should be.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, responsesOf, transcript } from './demo-agent.mjs';

export async function playWork({ cli, script, root, say }) {
  const file = join(root, 'service.json');
  const content = () => readFileSync(file, 'utf8').trim();
  writeFileSync(file, '{ "name": "draft", "database": "undecided" }\n');
  say(`   the file    ${content()}`);

  const first = await new Agent({ cli, script, root }).initialize();
  const { sessionId } = await first.newSession();
  say('   you write   "Call the service orders, and give it a database."');
  const lost = first
    .prompt(sessionId, 'Call the service orders, and give it a database.')
    .catch(() => 'lost with the process');
  await allow(first, say);
  const question = await first.asked();
  assert.match(content(), /"orders"/, 'what was allowed must be done before the next thing is asked');
  say(`   the file    ${content()}`);
  say(`   agent asks  "${question.toolCall.rawInput.questions[0].question}"`);
  say('   kill -9     the agent is gone');
  await first.kill('SIGKILL');
  await lost;

  const second = await new Agent({ cli, script, root }).initialize();
  await second.load(sessionId);
  const turn = second.goOn(sessionId);
  const again = await second.asked();
  assert.equal(again.toolCall.toolCallId, question.toolCall.toolCallId, 'it must be the same tool call');
  say('   a new process loads the session and asks again');
  say('   you answer  "Postgres"');
  second.said = '';
  again.answer({ outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Postgres' } });
  await allow(second, say);
  assert.equal((await turn).stopReason, 'end_turn');
  say(`   the file    ${content()}`);
  say(`   agent says  ${JSON.stringify(second.said)}`);
  assert.equal(content(), '{ "name": "orders", "database": "Postgres" }');
  const names = responsesOf(transcript(root, sessionId)).map(({ name }) => name);
  assert.deepEqual(names, ['read_file', 'edit', 'ask_user_question', 'write_file'], 'nothing may be done twice');
  say('   the same turn, in two processes: four calls, each done once');
  assert.deepEqual(await second.end(), { code: 0, signal: null });
}

/** Shows the change that the agent asks for, and allows it. */
async function allow(agent, say) {
  const { toolCall, options, answer } = await agent.asked();
  const change = toolCall.content.find(({ type }) => type === 'diff');
  say(`   agent asks  may I? ${toolCall.title}`);
  say(`               - ${change.oldText.trim()}`);
  say(`               + ${change.newText.trim()}`);
  const once = options.find(({ kind }) => kind === 'allow_once');
  say(`   you press   "${once.name}"`);
  answer({ outcome: { outcome: 'selected', optionId: once.optionId } });
}
