import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../src/acp/envelope.ts';
import * as methods from '../../src/acp/methods.ts';

test("[ACP-1] the restated protocol version is the SDK's", () => {
  expect(methods.PROTOCOL_VERSION).toBe(PROTOCOL_VERSION);
});

test.each([
  [methods.initialize, AGENT_METHODS.initialize],
  [methods.authenticate, AGENT_METHODS.authenticate],
  [methods.newSession, AGENT_METHODS.session_new],
  [methods.loadSession, AGENT_METHODS.session_load],
  [methods.resumeSession, AGENT_METHODS.session_resume],
  [methods.listSessions, AGENT_METHODS.session_list],
  [methods.closeSession, AGENT_METHODS.session_close],
  [methods.deleteSession, AGENT_METHODS.session_delete],
  [methods.prompt, AGENT_METHODS.session_prompt],
  [methods.cancel, AGENT_METHODS.session_cancel],
  [methods.setMode, AGENT_METHODS.session_set_mode],
  [methods.setConfigOption, AGENT_METHODS.session_set_config_option],
  [methods.sessionUpdate, CLIENT_METHODS.session_update],
  [methods.requestPermission, CLIENT_METHODS.session_request_permission],
  [methods.createElicitation, CLIENT_METHODS.elicitation_create],
  [methods.readTextFile, CLIENT_METHODS.fs_read_text_file],
  [methods.writeTextFile, CLIENT_METHODS.fs_write_text_file],
  [methods.createTerminal, CLIENT_METHODS.terminal_create],
  [methods.terminalOutput, CLIENT_METHODS.terminal_output],
  [methods.waitForTerminalExit, CLIENT_METHODS.terminal_wait_for_exit],
  [methods.killTerminal, CLIENT_METHODS.terminal_kill],
  [methods.releaseTerminal, CLIENT_METHODS.terminal_release],
])("[ACP-2] %o bears the SDK's name %s", ({ name }, expected) => {
  expect(name).toBe(expected);
});

test("[ACP-7] the cancellation on the wire is the SDK's, both ways", () => {
  expect(encodeMessage({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 3 } }, 'p-')).toEqual({
    jsonrpc: '2.0',
    method: PROTOCOL_METHODS.cancel_request,
    params: { requestId: 'p-3' },
  });
  expect(
    decodeMessage(
      JSON.stringify({ jsonrpc: '2.0', method: PROTOCOL_METHODS.cancel_request, params: { requestId: 'a' } }),
      'p-',
    ),
  ).toEqual({ kind: 'message', message: { jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 'a' } } });
});

test("[ACP-12] each of the reference's methods has a name that conforms to the protocol, no other has one", () => {
  for (const method of Object.values(methods)) {
    if (typeof method !== 'object' || !('name' in method)) continue;
    const foreign = /^(qwen|craft)\//.test(method.name);
    expect(method.aliases).toEqual(foreign ? [`_${method.name}`] : []);
  }
});
