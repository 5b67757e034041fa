import type { Check } from '../suite.ts';
import { expect, expectEqual } from '../verdicts.ts';
import { isObject } from '../wire.ts';
import { firstMisfit } from '../schema.ts';

const PAGE = 'protocol/v1/initialization';

export const HANDSHAKE: readonly Check[] = [
  {
    id: 'ACP-INIT-1',
    requirement: 'initialize is answered with protocol version 1 and agent capabilities that fit the schema.',
    source: PAGE,
    level: 'must',
    profile: 'core',
    async run(context) {
      const { initialized, peer } = await context.agent();
      const answer = peer.frames.at(-1);
      expectEqual(initialized.protocolVersion, 1, 'protocolVersion', answer);
      const misfit = firstMisfit(peer.frames);
      expect(misfit === undefined, misfit?.fault ?? '', misfit?.frame);
      expect(isObject(initialized.agentCapabilities), 'there are no agentCapabilities', answer);
    },
  },
];
