import { type FunctionDeclaration, Type } from '@google/genai';
import { expect, test } from 'vitest';
import { parametersOf } from '../../src/model/json-schema.ts';

const root = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

test.each<[string, Omit<FunctionDeclaration, 'name'>, object]>([
  ['none', {}, root({})],
  [
    'JSON Schema as it is',
    { parametersJsonSchema: root({ x: { type: 'string', minLength: 1 } }, { additionalProperties: false }) },
    root({ x: { type: 'string', minLength: 1 } }, { additionalProperties: false }),
  ],
  ['JSON Schema without a type', { parametersJsonSchema: { properties: {} } }, root({})],
  ['JSON Schema before the other', { parametersJsonSchema: root({}), parameters: { type: Type.STRING } }, root({})],
  [
    "Google's types, counts and names",
    {
      parameters: {
        type: Type.OBJECT,
        required: ['list'],
        propertyOrdering: ['list', 'either'],
        properties: {
          list: {
            type: Type.ARRAY,
            minItems: '1',
            maxItems: '4',
            items: { type: Type.INTEGER, format: 'int32', minimum: 0 },
          },
          maybe: { type: Type.STRING, nullable: true, enum: ['a', 'b'], example: 'a', description: 'one' },
          either: { anyOf: [{ type: Type.BOOLEAN }, { type: Type.NUMBER }] },
          open: { type: Type.TYPE_UNSPECIFIED },
        },
      },
    },
    root(
      {
        list: { type: 'array', minItems: 1, maxItems: 4, items: { type: 'integer', format: 'int32', minimum: 0 } },
        maybe: { type: ['string', 'null'], enum: ['a', 'b'], examples: ['a'], description: 'one' },
        either: { anyOf: [{ type: 'boolean' }, { type: 'number' }] },
        open: {},
      },
      { required: ['list'] },
    ),
  ],
])('[MD-2] the parameters of a function: %s', (_, declaration, expected) => {
  expect(parametersOf({ name: 'f', ...declaration })).toEqual(expected);
});
