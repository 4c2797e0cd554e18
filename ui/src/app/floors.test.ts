/** The folders of the window stand on floors: none imports from above, and none depends on itself through others. */

import { expect, inject, it } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    floors: string;
  }
}

const SOURCES = import.meta.glob<string>(
  ['../**/*.{ts,svelte}', '!../**/*.test.ts', '!../testing/**', '!../bindings/**'],
  {
    query: '?raw',
    import: 'default',
    eager: true,
  },
);

/** The floor of each folder that `tests/floors.toml` lists. */
const FLOORS = new Map(layers().flatMap((layer, floor) => [layer].flat().map((folder) => [folder, floor] as const)));

function layers(): (string | string[])[] {
  const [, after = ''] = inject('floors').split('[ui]');
  const [, list = ''] = /^layers = (\[[^]*?\n\])$/m.exec(after) ?? [];
  return JSON.parse(list.replace(/,(\s*\])/g, '$1'));
}

/** The longest listed folder that contains a path. */
function placeOf(path: string): string {
  const fitting = [...FLOORS.keys()].filter((folder) => path.startsWith(`${folder}/`));
  const [longest] = fitting.sort((a, b) => b.length - a.length);
  if (longest === undefined) throw new Error(`${path} lies in no folder of tests/floors.toml`);
  return longest;
}

/** A path from the root of the sources: `from` imports `path`. */
function resolved(from: string, path: string): string {
  return new URL(path, `file:///${from}`).pathname.slice(1);
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'));

/** Each import of a source file from another, both as paths from the root of the sources. */
const IMPORTS = Object.entries(SOURCES).flatMap(([file, text]) => {
  // The glob names neighbors of this test from here, and all others from the root.
  const from = resolved('app/floors.test.ts', file);
  const paths = [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)['"](\.[^'"]*)['"]/g)].map(([, path]) => path ?? '');
  // Files outside the sources, and those generated for a build, are on no floor.
  const inside = paths
    .map((path) => resolved(from, path))
    .filter((to) => folderOf(to) !== '' && !/^(icons|package|generated)/.test(to));
  return inside.map((to) => ({ from, to: to.endsWith('/') ? `${to}index` : to }));
});

it('finds the imports of the window', () => {
  expect(IMPORTS.length).toBeGreaterThan(1000);
});

it('imports nothing from a higher floor, nor from a neighbor on the same one', () => {
  const wrong = IMPORTS.filter(({ from, to }) => {
    const [here, there] = [placeOf(from), placeOf(`${to}/`)];
    const [floor, other] = [FLOORS.get(here) ?? 0, FLOORS.get(there) ?? 0];
    return other > floor || (other === floor && here !== there);
  });
  expect(wrong.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
});

it('has no circle of folders', () => {
  const needs = new Map<string, Set<string>>();
  const folders = new Set(Object.keys(SOURCES).map((file) => folderOf(resolved('app/floors.test.ts', file))));
  for (const { from, to } of IMPORTS) {
    // `..` names a folder by its index.
    const [here, there] = [folderOf(from), folders.has(to) ? to : folderOf(to)];
    if (here !== there) needs.set(here, (needs.get(here) ?? new Set()).add(there));
  }
  const reachable = (start: string): Set<string> => {
    const seen = new Set<string>();
    const open = [start];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const folder of needs.get(next) ?? []) {
        if (seen.has(folder)) continue;
        seen.add(folder);
        open.push(folder);
      }
    }
    return seen;
  };
  expect([...needs.keys()].filter((folder) => reachable(folder).has(folder))).toEqual([]);
});
