import published from '@agentclientprotocol/sdk/schema/v1/schema.json' with { type: 'json' };
import { z } from 'zod';
import { type Frame, isNotification, isObject, isReply, isRequest, type Json } from './wire.ts';

const DEFINITIONS = withoutNot(published.$defs) as Record<string, object>;
const compiled = new Map<string, z.ZodType>();

/** The results and calls of an agent, by method, as the protocol's published schema names them. */
const RESULTS: Readonly<Record<string, string>> = {
  initialize: 'InitializeResponse',
  'session/new': 'NewSessionResponse',
  'session/load': 'LoadSessionResponse',
  'session/resume': 'ResumeSessionResponse',
  'session/list': 'ListSessionsResponse',
  'session/close': 'CloseSessionResponse',
  'session/delete': 'DeleteSessionResponse',
  'session/prompt': 'PromptResponse',
};
const CALLS: Readonly<Record<string, string>> = {
  'session/update': 'SessionNotification',
  'session/request_permission': 'RequestPermissionRequest',
  'elicitation/create': 'CreateElicitationRequest',
  '$/cancel_request': 'CancelRequestNotification',
};

/** What of a value does not fit a definition of the schema, such as `update.title: …`; undefined when all does. */
export function faultIn(definition: string, value: Json): string | undefined {
  let validator = compiled.get(definition);
  if (validator === undefined) {
    validator = z.fromJSONSchema({ $ref: `#/$defs/${definition}`, $defs: DEFINITIONS } as never);
    compiled.set(definition, validator);
  }
  const { error } = validator.safeParse(value);
  if (error === undefined) return undefined;
  const { path, message } = nearest(error.issues as Issue[]);
  return `${path.join('.') || 'the value'}: ${message}`;
}

/** The first of the agent's frames that does not fit the schema, with its fault. */
export function firstMisfit(frames: readonly Frame[]): { readonly frame: Frame; readonly fault: string } | undefined {
  const asked = new Map<Json, string>();
  for (const frame of frames) {
    const { dir, value } = frame;
    if (dir === 'out') {
      if (isObject(value) && typeof value['method'] === 'string') asked.set(value['id'], value['method']);
      continue;
    }
    const fault = envelopeFault(frame) ?? contentFault(frame, asked);
    if (fault !== undefined) return { frame, fault };
  }
  return undefined;
}

/** What is wrong with a message as JSON-RPC 2.0. */
export function envelopeFault({ value }: Frame): string | undefined {
  if (!isObject(value)) return 'it is no JSON object';
  if (value['jsonrpc'] !== '2.0') return 'jsonrpc is not "2.0"';
  if ('method' in value) return typeof value['method'] === 'string' ? undefined : 'method is no string';
  if (!('id' in value)) return 'it has neither a method nor an id';
  if ('result' in value === 'error' in value) return 'it has not exactly one of result and error';
  return 'error' in value ? faultIn('Error', value['error']) : undefined;
}

function contentFault(frame: Frame, asked: ReadonlyMap<Json, string>): string | undefined {
  const { value } = frame;
  if (isRequest(frame) || isNotification(frame)) {
    const definition = CALLS[value.method];
    return definition === undefined ? undefined : faultIn(definition, value.params);
  }
  if (!isReply(frame) || 'error' in value) return undefined;
  const definition = RESULTS[asked.get(value.id) ?? ''];
  return definition === undefined ? undefined : faultIn(definition, value.result);
}

interface Issue {
  readonly code: string;
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly errors?: readonly (readonly Issue[])[];
}

/** Of a union's variants the one that the value seems to be: whose tag is right and whose fault lies deepest. */
function nearest(issues: readonly Issue[]): Issue {
  const issue = issues[0] as Issue;
  if (issue.code !== 'invalid_union' || !issue.errors?.length) return issue;
  const variants = issue.errors.filter((errors) => errors.length > 0);
  const meant = variants.filter(
    (errors) => !errors.some(({ code, path }) => code === 'invalid_value' && path.length === 1),
  );
  const chosen =
    (meant.length > 0 ? meant : variants).map(nearest).sort((a, b) => b.path.length - a.path.length)[0] ?? issue;
  return { ...chosen, path: [...issue.path, ...chosen.path] };
}

/** zod cannot express `not`, which the schema uses to tell variants apart. */
function withoutNot(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withoutNot);
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => !(key === 'not' && isObject(value)));
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutNot(value)]));
}
