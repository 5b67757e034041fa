import * as z from 'zod/mini';

/*
 * The bodies of the routes. Objects drop what is not named here, which is how nothing of a caller's `_meta` gets further
 * than it may: the blocks of a prompt have none left, whatever they came with.
 */

const text = z.string();
const annotations = z.object({
  audience: z.exactOptional(z.array(z.enum(['assistant', 'user']))),
  lastModified: z.exactOptional(text),
  priority: z.exactOptional(z.number()),
});
const block = <T extends z.core.$ZodShape>(shape: T) =>
  z.object({ ...shape, annotations: z.exactOptional(annotations) });
const data = { data: text, mimeType: text };

const contentBlock = z.discriminatedUnion('type', [
  block({ type: z.literal('text'), text }),
  block({ type: z.literal('image'), ...data, uri: z.exactOptional(text) }),
  block({ type: z.literal('audio'), ...data }),
  block({
    type: z.literal('resource_link'),
    uri: text,
    name: text,
    title: z.exactOptional(text),
    description: z.exactOptional(text),
    mimeType: z.exactOptional(text),
    size: z.exactOptional(z.number()),
  }),
  block({
    type: z.literal('resource'),
    resource: z.union([
      z.object({ uri: text, text, mimeType: z.exactOptional(text) }),
      z.object({ uri: text, blob: text, mimeType: z.exactOptional(text) }),
    ]),
  }),
]);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The most records of a history that a load may ask for. */
export const MAX_PAGE = 500;

const cwd = z.exactOptional(text.check(z.maxLength(4096), z.regex(/^(\/|[a-z]:[\\/])/i)));

export const BODIES = {
  create: z.object({
    cwd,
    sessionId: z.exactOptional(text.check(z.regex(UUID))),
    sessionScope: z.exactOptional(z.enum(['thread', 'shared', 'single'])),
  }),
  load: z.object({ cwd, historyPageSize: z.exactOptional(z.int().check(z.minimum(1), z.maximum(MAX_PAGE))) }),
  resume: z.object({ cwd }),
  prompt: z.object({
    prompt: z.array(contentBlock).check(z.minLength(1)),
    _meta: z.exactOptional(z.record(text, z.unknown())),
  }),
  branch: z.object({ name: z.exactOptional(text.check(z.maxLength(200))) }),
  vote: z.object({
    outcome: z.discriminatedUnion('outcome', [
      z.object({ outcome: z.literal('selected'), optionId: text }),
      z.object({ outcome: z.literal('cancelled') }),
    ]),
    answers: z.exactOptional(z.record(text, z.union([text, z.array(text)]))),
  }),
  empty: z.object({}),
} as const;

export type BodyName = keyof typeof BODIES;
export type Bodies = { readonly [K in BodyName]: z.infer<(typeof BODIES)[K]> };
