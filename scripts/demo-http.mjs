// The main job over HTTP: a question is asked, the daemon is killed, the next one is stopped cleanly, and the third gets the
// answer, with which the same turn ends. Fails loudly when a step is not as it should be.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** One `qwen-acp serve`, called with fetch. */
class Daemon {
  constructor(cli, args, options) {
    this.process = spawn(process.execPath, [cli, 'serve', '--port', '0', '--restore-ask-user-question', ...args], {
      ...options,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.exited = once(this.process, 'exit').then(([code, signal]) => ({ code, signal }));
  }

  async listening() {
    let line = '';
    for await (const text of this.process.stdout.setEncoding('utf8')) {
      line += text;
      if (line.includes('\n')) break;
    }
    this.url = /http:\S+/.exec(line)?.[0];
    assert.ok(this.url, 'the daemon must say where it listens');
    return this;
  }

  async call(method, path, body, clientId) {
    const headers = { 'content-type': 'application/json', ...(clientId && { 'x-qwen-client-id': clientId }) };
    const response = await fetch(`${this.url}${path}`, { method, headers, body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  }

  /** The session's events from now on; whoever comes late first sees what waits. */
  async *events(sessionId) {
    const response = await fetch(`${this.url}/session/${sessionId}/events`);
    let rest = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data) yield JSON.parse(data);
      }
    }
  }

  async end(signal) {
    this.process.kill(signal);
    return await this.exited;
  }
}

/** Reads until an event of this type; answers it, and what the agent said on the way. */
async function next(events, type) {
  let said = '';
  for (;;) {
    const { value, done } = await events.next();
    assert.ok(!done, `the events ended without ${type}`);
    said += value.data.update?.content?.text ?? '';
    if (value.type === type) return { data: value.data, said };
  }
}

export async function playOverHttp({ cli, script, root, say }) {
  const daemons = [];
  const start = async () => {
    const env = { ...process.env, QWEN_HOME: `${root}/home`, QWEN_RUNTIME_DIR: undefined };
    const daemon = new Daemon(cli, ['--auth-type', 'scripted', '--script', script], { cwd: root, env });
    daemons.push(daemon);
    return await daemon.listening();
  };
  const show = ({ requestId, toolCall }) =>
    say(`   agent asks  "${toolCall.rawInput.questions[0].question}"\n               request id ${requestId}`);
  try {
    const first = await start();
    const { sessionId, clientId } = (await first.call('POST', '/session', {})).body;
    const path = `/session/${sessionId}`;
    say(`   POST        ${first.url}${path}/prompt`);
    const prompt = [{ type: 'text', text: 'Set up storage for the service.' }];
    assert.equal((await first.call('POST', `${path}/prompt`, { prompt }, clientId)).status, 202);
    const { data: asked } = await next(first.events(sessionId), 'permission_request');
    show(asked);
    const { body: status } = await first.call('GET', `${path}/status`);
    assert.equal(status.isWaitingForUserQuestion, true);
    say('   kill -9     the daemon and its agent are gone');
    await first.end('SIGKILL');

    const second = await start();
    assert.equal((await second.call('GET', `${path}/status`)).status, 404, 'a daemon resumes nothing by itself');
    assert.equal((await second.call('POST', `${path}/load`, {}, 'me')).body.hasActivePrompt, true);
    say('   POST        /load in a new daemon');
    const { data: again } = await next(second.events(sessionId), 'permission_request');
    show(again);
    say('   SIGTERM     a deploy, while it waits for you');
    assert.deepEqual(await second.end('SIGTERM'), { code: 0, signal: null });

    const third = await start();
    await third.call('POST', `${path}/load`, {}, 'me');
    say('   POST        /load in a third daemon');
    const events = third.events(sessionId);
    const { data: last } = await next(events, 'permission_request');
    show(last);
    assert.equal(new Set([asked, again, last].map(({ requestId }) => requestId)).size, 3, 'each time a new request id');
    assert.equal(last.toolCall.toolCallId, asked.toolCall.toolCallId, 'it must be the same tool call');
    const vote = { outcome: { outcome: 'selected', optionId: 'proceed_once' }, answers: { 0: 'Postgres' } };
    assert.equal((await third.call('POST', `${path}/permission/${last.requestId}`, vote)).status, 200);
    say('   you vote    "Postgres"');
    const { said } = await next(events, 'turn_complete');
    assert.match(said, /Postgres/, 'the answer must have reached the model');
    say(`   agent says  ${JSON.stringify(said)}`);
    say('   the same turn ended with the real answer, two daemons later');
    assert.deepEqual(await third.end('SIGTERM'), { code: 0, signal: null });
  } finally {
    for (const daemon of daemons) daemon.process.kill('SIGKILL');
  }
}
