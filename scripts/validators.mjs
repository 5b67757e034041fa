// Compiles the protocol's published JSON Schema into src/acp/generated/, so that no validator is compiled at start-up.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { _, getProperty, not } from 'ajv/dist/compile/codegen/index.js';
import { Type } from 'ajv/dist/compile/util.js';
import { checkDataTypes, DataType } from 'ajv/dist/compile/validate/dataType.js';
import standaloneCode from 'ajv/dist/standalone/index.js';

const SCHEMA = createRequire(import.meta.url).resolve('@agentclientprotocol/sdk/schema/v1/schema.json');

const DEFINITIONS = [
  'InitializeRequest',
  'InitializeResponse',
  'AuthenticateRequest',
  'NewSessionRequest',
  'LoadSessionRequest',
  'ResumeSessionRequest',
  'ListSessionsRequest',
  'CloseSessionRequest',
  'DeleteSessionRequest',
  'PromptRequest',
  'CancelNotification',
  'SetSessionModeRequest',
  'SetSessionConfigOptionRequest',
  'RequestPermissionRequest',
  'RequestPermissionResponse',
  'CreateElicitationResponse',
  'ReadTextFileRequest',
  'ReadTextFileResponse',
  'WriteTextFileRequest',
];

/** The schema requires `mcpServers` of them; a client that leaves it out has none. */
const WITHOUT_MCP_SERVERS = ['NewSessionRequest', 'LoadSessionRequest', 'ResumeSessionRequest'];

/** What says nothing of validity, and what is translated into the keywords below. */
const DROPPED = new Set([
  'description',
  'title',
  'format',
  'default',
  'discriminator',
  'x-side',
  'x-method',
  'x-docs-ignore',
]);

/**
 * `{forgive: schema}`: a property that does not fit counts as absent. `{forgiveUnlessNull: schema}`: so does it, but
 * null is a value.
 */
const forgiveKeyword = (keyword) => ({
  keyword,
  schemaType: 'object',
  modifying: true,
  trackErrors: true,
  code(context) {
    const { gen, data, it, schema } = context;
    const drop = () => gen.code(_`delete ${it.parentData}[${it.parentDataProperty}]`);
    if (isBareType(schema)) {
      // Most are a bare type, `_meta` above all; without errors to roll back the check is a tenth of the code.
      gen.if(checkDataTypes([schema.type].flat(), data, false, DataType.Wrong), drop);
      return;
    }
    if (keyword === 'forgiveUnlessNull') gen.if(_`${data} !== null`);
    const valid = gen.name('_valid');
    context.subschema({ keyword, compositeRule: true, createErrors: false, allErrors: false }, valid);
    gen.if(not(valid), () => {
      context.reset();
      drop();
    });
    if (keyword === 'forgiveUnlessNull') gen.endIf();
  },
});

const isBareType = (schema) => Object.keys(schema).length === 1 && 'type' in schema;

/** `{forgiveItems: schema}`: items that do not fit are left out. */
const forgiveItems = {
  keyword: 'forgiveItems',
  type: 'array',
  schemaType: 'object',
  modifying: true,
  trackErrors: true,
  code(context) {
    const { gen, data, it } = context;
    const kept = gen.const('kept', _`[]`);
    gen.forRange('i', 0, _`${data}.length`, (i) => {
      const valid = gen.name('_valid');
      context.subschema(
        {
          keyword: 'forgiveItems',
          dataProp: i,
          dataPropType: Type.Num,
          compositeRule: true,
          createErrors: false,
          allErrors: false,
        },
        valid,
      );
      gen.if(
        valid,
        () => gen.code(_`${kept}.push(${data}[${i}])`),
        () => context.reset(),
      );
    });
    gen.code(_`${it.parentData}[${it.parentDataProperty}] = ${kept}`);
  },
};

/** `{emptyOnNull: schema}`: null counts as an empty list. */
const emptyOnNull = {
  keyword: 'emptyOnNull',
  schemaType: 'object',
  modifying: true,
  code(context) {
    const { gen, data, it } = context;
    const valid = gen.let('valid', true);
    gen.if(
      _`${data} === null`,
      () => gen.code(_`${it.parentData}[${it.parentDataProperty}] = []`),
      () => {
        const schemaValid = gen.name('_valid');
        context.subschema({ keyword: 'emptyOnNull' }, schemaValid);
        gen.assign(valid, schemaValid);
      },
    );
    context.ok(valid);
  },
};

/**
 * `{variants: {value: schema}, variantTag}`: an object's tag says which schema it fits, so that a fault is reported for
 * the variant that was meant. With `variantsOpen` an unknown tag passes.
 */
const variants = {
  keyword: 'variants',
  schemaType: 'object',
  error: {
    message: ({ parentSchema: { variantTag, variants: cases } }) =>
      `must be an object with "${variantTag}" one of ${Object.keys(cases).join(', ')}`,
  },
  code(context) {
    const { gen, data, schema, parentSchema } = context;
    const valid = gen.let('valid', false);
    const tag = gen.const(
      'tag',
      _`${data} && typeof ${data} == "object" && !Array.isArray(${data}) ? ${data}${getProperty(parentSchema.variantTag)} : undefined`,
    );
    gen.if(false);
    for (const [value, fits] of Object.entries(schema)) {
      gen.elseIf(_`${tag} === ${value}`);
      const caseValid = gen.name('_valid');
      if (Object.keys(fits).length > 0) context.subschema({ keyword: 'variants', schemaProp: value }, caseValid);
      gen.assign(valid, Object.keys(fits).length > 0 ? caseValid : true);
    }
    if (parentSchema.variantsOpen) {
      gen.elseIf(_`typeof ${tag} == "string"`);
      gen.assign(valid, true);
    }
    gen.else();
    context.error();
    gen.endIf();
    context.ok(valid);
  },
};

/** Writes validators.js and validators.d.ts; leaves them untouched where nothing changed. */
export async function generateValidators() {
  const { $defs } = JSON.parse(await readFile(SCHEMA, 'utf8'));
  const ajv = new Ajv({
    strict: false,
    useDefaults: true,
    code: { source: true, esm: true, lines: false, optimize: 2 },
    keywords: [forgiveKeyword('forgive'), forgiveKeyword('forgiveUnlessNull'), forgiveItems, emptyOnNull, variants],
  });
  ajv.addSchema({ $id: 'acp', $defs: reachable($defs) });
  const code = slim(standaloneCode(ajv, Object.fromEntries(DEFINITIONS.map((name) => [name, `acp#/$defs/${name}`]))));
  if (/\brequire\(/.test(code)) throw new Error('a generated validator needs ajv at run time');
  const folder = new URL('../src/acp/generated/', import.meta.url);
  await mkdir(folder, { recursive: true });
  await replace(
    new URL('validators.js', folder),
    `${code}\nexport const validators = { ${DEFINITIONS.join(', ')} };\n`,
  );
  await replace(new URL('validators.d.ts', folder), declarations());
}

/** Only an error's path and message are ever read; the rest is a quarter of the code. */
const slim = (code) =>
  code.replaceAll(/schemaPath:"[^"]*",/g, '').replaceAll(/(keyword:"\w+"),params:\{[^{}]*\},/g, '$1,');

/** vitest's name for what runs once before all tests. */
export async function setup() {
  await generateValidators();
}

function reachable(definitions) {
  const found = {};
  const visit = (name) => {
    if (name in found) return;
    found[name] = translate(definitions[name]);
    for (const [, next] of JSON.stringify(found[name]).matchAll(/"acp#\/\$defs\/(\w+)"/g)) visit(next);
  };
  for (const name of DEFINITIONS) visit(name);
  for (const name of WITHOUT_MCP_SERVERS) found[name].properties.mcpServers.default = [];
  return found;
}

function translate(schema) {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (typeof schema.$ref === 'string') return { $ref: `acp${schema.$ref}` };
  const result = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (DROPPED.has(keyword) || keyword.startsWith('x-deserialize-') || value === true) continue;
    if (keyword === 'properties') result[keyword] = mapValues(value, translate);
    else if (keyword === 'items' && schema['x-deserialize-skip-invalid-items']) result.forgiveItems = translate(value);
    else if (Array.isArray(value)) result[keyword] = value.map(translate);
    else result[keyword] = translate(value);
  }
  return forgiving(schema, simplify(result));
}

function forgiving(schema, result) {
  if (schema['x-deserialize-default-on-null']) return { emptyOnNull: result };
  // A schema without keywords accepts everything.
  if (!schema['x-deserialize-default-on-error'] || Object.keys(result).length === 0) return result;
  const [value, orNull] = result.anyOf ?? [];
  return orNull?.type === 'null' && result.anyOf.length === 2 ? { forgiveUnlessNull: value } : { forgive: result };
}

/** Spellings of the schema's own generator that would cost code, or the fault's path. */
function simplify(schema) {
  const keywords = Object.keys(schema);
  if ('const' in schema) return { const: schema.const };
  if (keywords.length === 1 && schema.allOf?.length === 1) return schema.allOf[0];
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices === undefined) return schema;
  if (choices.every((choice) => 'const' in choice)) return { enum: choices.map((choice) => choice.const) };
  return taggedUnion(schema, choices) ?? schema;
}

function taggedUnion({ oneOf: _oneOf, anyOf: _anyOf, ...rest }, choices) {
  const tags = choices.map(({ properties = {} }) => Object.keys(properties));
  const [variantTag] = tags[0];
  const closed = choices.filter((choice) => choice.not === undefined);
  const constant = ({ properties }) => properties[variantTag].const;
  if (!tags.every((names) => names.length === 1 && names[0] === variantTag)) return undefined;
  if (!closed.every((choice) => constant(choice) !== undefined)) return undefined;
  return {
    ...rest,
    variantTag,
    variants: Object.fromEntries(closed.map((choice) => [constant(choice), choice.allOf?.[0] ?? {}])),
    ...(closed.length < choices.length && { variantsOpen: true }),
  };
}

const mapValues = (object, map) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));

function declarations() {
  return `export interface SchemaError {
  readonly instancePath: string;
  readonly keyword: string;
  readonly message?: string;
}
export interface Validator {
  (value: unknown): boolean;
  readonly errors?: readonly SchemaError[] | null;
}
export declare const validators: {
${DEFINITIONS.map((name) => `  readonly ${name}: Validator;`).join('\n')}
};
`;
}

/** By rename, as a test run may be reading the file. */
async function replace(url, text) {
  if ((await readFile(url, 'utf8').catch(() => undefined)) === text) return;
  const temporary = new URL(`${url.href}.${process.pid}`);
  await writeFile(temporary, text);
  await rename(temporary, url);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await generateValidators();
