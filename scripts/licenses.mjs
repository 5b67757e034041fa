// The packages that are bundled into dist/ want their licences beside their code.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** `paths` are inputs of the bundles, from `root`. Gives one text: name, version, licence and its words for each package. */
export async function licencesOf(root, paths) {
  const folders = new Set([...paths].flatMap((path) => packageFolder(path) ?? []));
  const texts = await Promise.all([...folders].sort().map((folder) => licenceOf(join(root, folder))));
  return `This program contains code of these packages.\n\n${texts.join('\n\n')}\n`;
}

/** `node_modules/a/node_modules/@b/c` of any file in it; undefined for our own. */
function packageFolder(path) {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
}

async function licenceOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const file = (await readdir(folder)).find((each) => /^(licen[cs]e|copying)/i.test(each));
  const words = file !== undefined ? await readFile(join(folder, file), 'utf8') : '';
  return [`== ${name} ${version} (${license ?? 'see below'})`, words.trim()].filter((line) => line !== '').join('\n\n');
}
