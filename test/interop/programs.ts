import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Where scripts/interop.mjs has put the programs of others. */
const CACHE = process.env['QWEN_ACP_INTEROP_CACHE'] ?? join(ROOT, '.cache/interop');
const installed = (path: string) => join(CACHE, 'node_modules', path);

/** A Node that runs the reference and acpx; ours runs on it, too, where a daemon starts its child with its own Node. */
export const NODE_22 = process.env['QWEN_ACP_INTEROP_NODE'] ?? installed(`node-linux-${process.arch}/bin/node`);

export const OUR_CLI = join(ROOT, 'dist/cli.js');
export const REFERENCE_CLI = installed('@qwen-code/qwen-code/cli.js');
export const ACPX = installed('acpx/dist/cli.js');
export const ACP_FACTORY = installed('acp-factory/dist/index.js');
/** The ACP SDK as it was first published, under its first name, and the first under today's. */
export const SDK_FIRST = installed('acp-sdk-first/dist/acp.js');
export const SDK_FIRST_OF_NAME = installed('acp-sdk-first-of-name/dist/acp.js');
export const PACKAGE_ROOT = ROOT;

/** Whose program it is. */
export type Whose = 'ours' | 'reference';

export const CLI: Readonly<Record<Whose, string>> = { ours: OUR_CLI, reference: REFERENCE_CLI };
