import type { Issue } from './errors.ts';
import { RequestError } from './errors.ts';
import type { SchemaError } from './generated/validators.js';
import { validators } from './generated/validators.js';
import type { Parser } from './rpc.ts';
import { isRecord } from '../is-record.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A union with many branches has as many faults; the first few tell. */
const MAX_ISSUES = 5;

/** A definition of the protocol's schema for which a validator is generated. */
export type DefinitionName = keyof typeof validators;

/**
 * Checks a value by a definition of the protocol's own JSON Schema, forgiving what the schema says to forgive. The value
 * is changed in place. No params, or null, count as an empty object, as in the SDK.
 */
export function parserOf<T>(name: DefinitionName): Parser<T> {
  return (params) => {
    const validate = validators[name];
    const value = params ?? {};
    if (validate(value)) return value as T;
    throw RequestError.invalidParams(issuesOf(validate.errors));
  };
}

/** A JSON object with at least these string members. */
export function objectWith<T>(...names: readonly string[]): Parser<T> {
  return (value) => {
    if (!isRecord(value)) throw RequestError.invalidParams([{ path: '', message: 'must be object' }]);
    for (const name of names) {
      if (typeof value[name] !== 'string') {
        throw RequestError.invalidParams([{ path: `/${name}`, message: 'must be string' }]);
      }
    }
    return value as T;
  };
}

/** A JSON object, or nothing at all, which counts as an empty one. */
export function optionalObject<T>(): Parser<T> {
  const parse = objectWith<T>();
  return (value) => parse(value ?? {});
}

/** Of a union that fits nowhere ajv reports every branch: the deepest faults say best what was meant. */
function issuesOf(errors: readonly SchemaError[] | null | undefined): [Issue, ...Issue[]] {
  const depth = (error: SchemaError) => error.instancePath.split('/').length;
  const sorted = [...(errors ?? [])].sort((a, b) => depth(b) - depth(a));
  const issues = sorted.slice(0, MAX_ISSUES).map(({ instancePath, message }) => ({
    path: instancePath,
    message: message ?? 'is invalid',
  }));
  const [first, ...rest] = issues;
  return first ? [first, ...rest] : [{ path: '', message: 'is invalid' }];
}
