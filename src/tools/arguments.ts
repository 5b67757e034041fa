import { ToolFault } from '../session/faults.ts';

const HALF_CHARACTER = /\p{Surrogate}/u;

type Args = Readonly<Record<string, unknown>>;

/** Throws `ToolFault` `invalid_tool_params`: what is wrong with an argument, for the model to do better. */
export function refuseArgument(complaint: string): never {
  throw new ToolFault('invalid_tool_params', complaint);
}

/** A text that must be there; blank only where `mayBeBlank`. */
export function textArgument(args: Args, name: string, mayBeBlank = false): string {
  const value = args[name];
  if (typeof value !== 'string') refuseArgument(`"${name}" must be a string.`);
  // It would be written as another character than the one that a person was shown.
  if (HALF_CHARACTER.test(value)) refuseArgument(`"${name}" has half of a character (a lone surrogate).`);
  if (!mayBeBlank && value.trim() === '') refuseArgument(`"${name}" must not be empty.`);
  return value;
}

/** Models write null, or nothing between quotes, for what they leave out. */
export function optionalText(args: Args, name: string): string | undefined {
  const value = args[name];
  return value === undefined || value === null || value === '' ? undefined : textArgument(args, name);
}

export function optionalInteger(args: Args, name: string, least: number, most: number): number | undefined {
  const value = args[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    refuseArgument(`"${name}" must be a whole number from ${least} to ${most}.`);
  }
  return value;
}

/** False where it is left out. */
export function optionalFlag(args: Args, name: string): boolean {
  const value = args[name];
  if (value === undefined || value === null) return false;
  if (typeof value !== 'boolean') refuseArgument(`"${name}" must be true or false.`);
  return value;
}

export function optionalTexts(args: Args, name: string): readonly string[] {
  const value = args[name];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
    refuseArgument(`"${name}" must be a list of strings.`);
  }
  return value;
}
