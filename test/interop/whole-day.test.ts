import { expect, test } from 'vitest';
import { dayPlace, expectPaired, spendDay } from '../support/day.ts';
import { WIRES } from '../support/day-model.ts';
import { load, startAgent } from './agent.ts';
import { comparable } from './compare.ts';
import { Site } from './place.ts';

test.each(WIRES)(
  '[TR-1, TR-3, ACP-3] %s: our day is shown by the reference as by us, and goes on there',
  async (wire) => {
    const { cwd, model } = await dayPlace(wire);
    const site = new Site(model.settings, model.env, cwd);
    const { sessionId, peer } = await spendDay({ cwd, model }, () => startAgent('ours', site));
    await peer.kill('SIGTERM');
    const written = site.text(sessionId);

    const ours = await startAgent('ours', site);
    const reference = await startAgent('reference', site);
    const [here, there] = [await load(ours, site, sessionId), await load(reference, site, sessionId)];
    expect(site.text(sessionId)).toBe(written);
    expect(here.updates.length).toBeGreaterThan(200);
    expect(here.updates.map(comparable)).toEqual(there.updates.map(comparable));
    await ours.kill('SIGTERM');

    const before = model.conversations.at(-1) ?? [];
    const asked = model.requests.length;
    expect(await reference.prompt(sessionId, 'T51 And you?')).toMatchObject({ stopReason: 'end_turn' });
    expect(reference.said()).toContain('T51 DONE');
    const sent =
      model.conversations.slice(asked).find((messages) => messages.at(-1)?.text.includes('T51 And you?')) ?? [];
    expectPaired(sent, model.issued);
    // It takes the conversation up where our last request left it.
    const calls = (messages: typeof sent) => messages.flatMap(({ calls }) => calls.map(({ id }) => id));
    expect(calls(sent)).toEqual(calls(before));
    await reference.kill('SIGTERM');
  },
);
