/**
 * JSON as people write it: line and block comments, commas before a closing bracket, a byte order mark.
 * Throws `SyntaxError` with JSON.parse's own message; positions in it are those of the original text.
 */
export function parseJsonWithComments(text: string): unknown {
  return JSON.parse(blankTrailingCommas(blankComments(text)));
}

/** Replaces with blanks instead of removing, so that the positions in JSON.parse's messages stay true. */
function blankComments(text: string): string {
  const tokens = /"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|^\uFEFF/g;
  return text.replace(tokens, (token) => (token.startsWith('"') ? token : token.replace(/[^\n]/g, ' ')));
}

function blankTrailingCommas(text: string): string {
  const tokens = /"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g;
  return text.replace(tokens, (token) => (token.startsWith('"') ? token : ' '));
}
