import type { NotificationMethod, RequestMethod } from '../../src/acp/rpc.ts';

/** A method that takes and gives anything. */
export const anyRequest = (name: string): RequestMethod<unknown, unknown> => ({
  name,
  aliases: [],
  params: (value) => value,
  result: undefined,
});
export const anyNotification = (name: string): NotificationMethod<unknown> => ({
  name,
  aliases: [],
  params: (value) => value,
});
