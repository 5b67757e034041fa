import manifest from '../../package.json' with { type: 'json' };

/** This program's version, as its package states it. */
export const VERSION: string = manifest.version;
