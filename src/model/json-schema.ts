import type { FunctionDeclaration, Schema } from '@google/genai';
import { isRecord } from '../is-record.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The parameters of a function as JSON Schema, whose root is an object: what every other provider than Google takes. */
export function parametersOf({ parameters, parametersJsonSchema }: FunctionDeclaration): JsonSchema {
  const schema = isRecord(parametersJsonSchema) ? parametersJsonSchema : fromGemini(parameters ?? {});
  return { ...(isRecord(schema) ? schema : {}), type: 'object', properties: schema['properties'] ?? {} };
}

/** What Gemini's schemas and JSON Schema share by name and meaning. */
const SHARED = [
  'title',
  'description',
  'default',
  'enum',
  'format',
  'pattern',
  'required',
  'minimum',
  'maximum',
] as const;
/** 64-bit counts, which Gemini writes as text. */
const COUNTS = ['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties'] as const;

function fromGemini(schema: Schema): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  const type = schema.type?.toLowerCase();
  if (type && type !== 'type_unspecified') result['type'] = schema.nullable ? [type, 'null'] : type;
  for (const key of SHARED) if (schema[key] !== undefined) result[key] = schema[key];
  for (const key of COUNTS) if (schema[key] !== undefined) result[key] = Number(schema[key]);
  if (schema.example !== undefined) result['examples'] = [schema.example];
  if (schema.items) result['items'] = fromGemini(schema.items);
  if (schema.anyOf) result['anyOf'] = schema.anyOf.map(fromGemini);
  if (schema.properties) {
    result['properties'] = Object.fromEntries(
      Object.entries(schema.properties).map(([name, property]) => [name, fromGemini(property)]),
    );
  }
  return result;
}
