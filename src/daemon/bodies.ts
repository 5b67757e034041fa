import * as z from 'zod/mini';
import { BODIES, type Bodies, type BodyName, MAX_PAGE } from './schemas.ts';

/** What a body is wrong in, as the answer of status 400 has it. */
export interface BodyFault {
  readonly message: string;
  readonly code?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export type ParsedBody<N extends BodyName> =
  | { readonly ok: true; readonly body: Bodies[N] }
  | { readonly ok: false; readonly fault: BodyFault };

/** Parses a body; what is not in its schema is dropped. */
export function parseBody<N extends BodyName>(name: N, value: unknown): ParsedBody<N> {
  const parsed = z.safeParse(BODIES[name], value);
  if (parsed.success) return { ok: true, body: parsed.data as Bodies[N] };
  return { ok: false, fault: faultOf(name, parsed.error.issues[0] as z.core.$ZodIssue) };
}

/** The schema of a body for the OpenAPI document. */
export function bodySchema(name: BodyName): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(BODIES[name], { io: 'input', unrepresentable: 'any' });
  return schema;
}

function faultOf(name: BodyName, issue: z.core.$ZodIssue): BodyFault {
  const [field] = issue.path;
  if (field === undefined) return { message: 'The body must be a JSON object' };
  if (name === 'vote' && field === 'outcome') {
    return { message: '`outcome` must be {"outcome": "cancelled"} or {"outcome": "selected", "optionId": "<text>"}' };
  }
  if (name === 'vote' && field === 'answers') {
    return { message: '`answers` must be an object of texts or lists of texts', code: 'invalid_answers' };
  }
  if (field === 'historyPageSize') {
    return {
      message: `\`historyPageSize\` must be a whole number from 1 to ${MAX_PAGE}`,
      code: 'invalid_transcript_limit',
      details: { maxLimit: MAX_PAGE },
    };
  }
  if (field === 'prompt' && issue.path.length === 1) {
    return { message: '`prompt` must be a list of at least one content block' };
  }
  if (field === 'sessionId') return { message: '`sessionId` must be a UUID', code: 'invalid_session_id' };
  if (field === 'cwd' && issue.code === 'invalid_format') {
    return { message: '`cwd` must be an absolute path', code: 'invalid_body' };
  }
  return { message: `\`${placeOf(issue.path)}\` ${complaint(issue)}`, code: 'invalid_body' };
}

/** `prompt[0].text` and the like. */
function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${String(key)}`))
    .join('');
}

function complaint(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be of type ${issue.expected}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map((each) => JSON.stringify(each)).join(', ')}`;
    case 'too_big':
      return `must have at most ${issue.maximum} characters`;
    case 'invalid_union':
      return issue.discriminator === undefined
        ? 'has a form that is not known'
        : `has no known "${issue.discriminator}"`;
    default:
      return 'is not valid';
  }
}
