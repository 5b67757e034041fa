// Writes docs/COMPARISON.md: the interop tests of the kit do it when they are told where to.
import { fileURLToPath } from 'node:url';

process.env.QWEN_ACP_COMPARISON = fileURLToPath(new URL('../docs/COMPARISON.md', import.meta.url));
process.argv.push('conformance');
await import('./interop.mjs');
