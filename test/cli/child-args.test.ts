import { expect, test } from 'vitest';
import { acpChildExtraArgs } from '../../src/cli/child-args.ts';

test.each([
  [{}, undefined],
  [{ experimentalLsp: false, restoreAskUserQuestion: false }, undefined],
  [{ restoreAskUserQuestion: true }, ['--restore-ask-user-question']],
  [{ experimentalLsp: true }, ['--experimental-lsp']],
  [{ restoreAskUserQuestion: true, experimentalLsp: true }, ['--experimental-lsp', '--restore-ask-user-question']],
])('[CLI-3] %j adds %j to the child', (flags, expected) => {
  expect(acpChildExtraArgs(flags)).toEqual(expected);
});
