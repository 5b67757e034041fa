/** Checks JSON that is copied without being parsed. Positions are indexes into the bytes; -1 says that it is no JSON. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MAX_DEPTH = 64;

/** Behind the closing quote of the string whose opening quote is at `at`. */
export function stringEnd(bytes: Uint8Array, at: number, to: number): number {
  if (bytes[at] !== QUOTE) return -1;
  let i = at + 1;
  while (i < to) {
    // Keys and ids are too short for it to be worth it.
    if (i - at > 16) i = plainRunEnd(bytes, i, to);
    const byte = bytes[i] as number;
    if (byte === QUOTE) return i < to ? i + 1 : -1;
    if (byte === BACKSLASH) {
      const escaped = ESCAPE[bytes[i + 1] as number];
      if (escaped === 1) i += 2;
      else if (escaped === 2 && isHex(bytes, i + 2)) i += 6;
      else return -1;
    } else if (byte < 0x20) return -1;
    else i++;
  }
  return -1;
}

let viewed: ArrayBufferLike = new ArrayBuffer(0);
let view: DataView<ArrayBufferLike> = new DataView(viewed);

/**
 * Skips from `at`, four bytes at a time, what neither ends a string nor escapes nor may not be in it. Long texts are most
 * of a transcript, and this is more than twice as fast as looking at each byte.
 */
function plainRunEnd(bytes: Uint8Array, at: number, to: number): number {
  if (viewed !== bytes.buffer) {
    viewed = bytes.buffer;
    view = new DataView(viewed);
  }
  const base = bytes.byteOffset;
  let i = at;
  for (const last = to - 4; i <= last; i += 4) {
    const four = view.getInt32(base + i, true);
    const quotes = four ^ 0x22222222;
    const backslashes = four ^ 0x5c5c5c5c;
    const found =
      (((quotes - 0x01010101) & ~quotes) |
        ((backslashes - 0x01010101) & ~backslashes) |
        ((four - 0x20202020) & ~four)) &
      0x80808080;
    // Borrows can report a byte too many, but only behind one that is truly found, and the first is what counts.
    if (found !== 0) return i + ((31 - Math.clz32(found & -found)) >> 3);
  }
  return i;
}

function isHex(bytes: Uint8Array, at: number): boolean {
  for (let i = at; i < at + 4; i++) if (HEX[bytes[i] as number] !== 1) return false;
  return true;
}

/** 1: an escape of one character; 2: `u`, which four hexadecimal digits follow. */
const ESCAPE = table((set) => {
  for (const character of '"\\/bfnrt') set(character, 1);
  set('u', 2);
});
const HEX = table((set) => {
  for (const digit of '0123456789abcdefABCDEF') set(digit, 1);
});

function table(fill: (set: (character: string, value: number) => void) => void): Uint8Array {
  const bytes = new Uint8Array(256);
  fill((character, value) => {
    bytes[character.charCodeAt(0)] = value;
  });
  return bytes;
}

/** Behind the JSON value, written without white space, that begins at `at`. */
export function valueEnd(bytes: Uint8Array, at: number, to: number, depth = 0): number {
  switch (bytes[at]) {
    case QUOTE:
      return stringEnd(bytes, at, to);
    case OPEN_BRACE:
      return depth === MAX_DEPTH ? -1 : objectEnd(bytes, at, to, depth + 1);
    case OPEN_BRACKET:
      return depth === MAX_DEPTH ? -1 : arrayEnd(bytes, at, to, depth + 1);
    default:
      return scalarEnd(bytes, at, to);
  }
}

function objectEnd(bytes: Uint8Array, from: number, to: number, depth: number): number {
  if (bytes[from + 1] === CLOSE_BRACE) return from + 2;
  let at = from;
  do {
    at = stringEnd(bytes, at + 1, to);
    if (at === -1 || bytes[at] !== COLON) return -1;
    at = valueEnd(bytes, at + 1, to, depth);
    if (at === -1) return -1;
  } while (bytes[at] === COMMA && at < to);
  return at < to && bytes[at] === CLOSE_BRACE ? at + 1 : -1;
}

function arrayEnd(bytes: Uint8Array, from: number, to: number, depth: number): number {
  if (bytes[from + 1] === CLOSE_BRACKET) return from + 2;
  let at = from;
  do {
    at = valueEnd(bytes, at + 1, to, depth);
    if (at === -1) return -1;
  } while (bytes[at] === COMMA && at < to);
  return at < to && bytes[at] === CLOSE_BRACKET ? at + 1 : -1;
}

const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const MAX_SCALAR = 64;

function scalarEnd(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  let text = '';
  while (at < to && at - from < MAX_SCALAR) {
    const byte = bytes[at] as number;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) break;
    text += String.fromCharCode(byte);
    at++;
  }
  return SCALAR.test(text) ? at : -1;
}
