/** What every provider takes as a function's name; Gemini's is the shortest bound. */
const MAX_NAME_LENGTH = 63;
const SAFE_NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;

/**
 * The name under which a model calls a tool of an MCP server: `mcp__<server>__<tool>`. A name that no provider would take
 * is sanitized, cut and ended by a hash of what it was, exactly as qwen-code does: its transcripts carry these names.
 */
export function mcpToolName(server: string, tool: string): string {
  const name = `mcp__${server}__${tool}`;
  if (name.length <= MAX_NAME_LENGTH && SAFE_NAME.test(name)) return name;
  return cutTo(name.replace(/[^A-Za-z0-9_-]/g, '_'), `_${fnv1a(name)}`);
}

/**
 * The same for all tools of a session, in their order: a name that is taken already gets a number. `a__b` with the tool `c`
 * and `a` with the tool `b__c` are two tools.
 */
export function mcpToolNames(tools: readonly { readonly server: string; readonly tool: string }[]): string[] {
  const taken = new Set<string>();
  return tools.map(({ server, tool }) => {
    const wanted = mcpToolName(server, tool);
    let name = wanted;
    for (let number = 2; taken.has(name); number += 1) name = cutTo(wanted, `_${number}`);
    taken.add(name);
    return name;
  });
}

/** Foreign text as part of one line for a person: without control characters, not longer than `max` characters. */
export function printable(text: string, max: number): string {
  const clean = text.replace(/\p{Cc}+/gu, ' ').trim();
  return clean.length <= max ? clean : `${clean.slice(0, max)}…`;
}

function cutTo(name: string, suffix: string): string {
  return name.slice(0, MAX_NAME_LENGTH - suffix.length) + suffix;
}

/** FNV-1a over UTF-16 units, 32 bits, as seven digits of base 36. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, '0');
}
