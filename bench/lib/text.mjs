// Deterministic pseudo-random texts.
const WORDS =
  'the session load path reads every record of file and then builds history for model while client waits; "quoted" text, const x = y ?? 0; return new Map() // comment if (a && b) { await fetch(url); } naïve café 日本語 emoji 🙂 path/to/file.ts:120 \\n error TS2345: Argument of type'.split(
    ' ',
  );

/** A seeded source of numbers and texts (mulberry32). */
export function randomSource(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const integer = (low, high) => low + Math.floor(next() * (high - low + 1));
  const logUniform = (low, high) => Math.round(Math.exp(Math.log(low) + next() * (Math.log(high) - Math.log(low))));
  const text = (length) => {
    let words = '';
    let column = 0;
    while (words.length < length) {
      const word = WORDS[integer(0, WORDS.length - 1)];
      column += word.length + 1;
      words += word + (column > 90 ? '\n' : ' ');
      if (column > 90) column = 0;
    }
    // A cut may split the emoji; half a surrogate pair is no valid text.
    return (
      words
        .slice(0, length)
        .replace(/[\ud800-\udbff]$/, '.')
        .trim() || '.'
    );
  };
  return { chance: (probability) => next() < probability, integer, logUniform, text };
}
