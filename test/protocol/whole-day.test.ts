import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dayPlace, spendDay } from '../support/day.ts';
import { WIRES } from '../support/day-model.ts';
import { Home, Peer } from '../support/peer.ts';

test.each(WIRES)(
  '[TL-1, TL-2, MD-2, MD-4, MD-5, TR-9, RS-4, BT-6] %s: a day of fifty turns, with all tools, questions, compressions and a kill',
  async (wire) => {
    const place = await dayPlace(wire);
    const home = new Home();
    writeFileSync(join(home.path, 'settings.json'), JSON.stringify(place.model.settings));
    const start = () => Peer.start({ home, restore: true, script: null, env: place.model.env });
    const { peer } = await spendDay(place, start);
    expect(peer.stderr).toBe('');
    expect(await peer.eof()).toMatchObject({ code: 0 });
  },
  60_000,
);
