import { describe, expect, it } from 'vitest';

import css from './app.css?raw';

type Colours = Record<string, string>;

const STYLES = import.meta.glob<string>(['../**/*.svelte', './app.css'], {
  query: '?raw',
  import: 'default',
  eager: true,
});

function coloursOf(block: string): Colours {
  return Object.fromEntries(
    [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g)].map(([, name, colour]) => [name ?? '', colour ?? '']),
  );
}

/** The colors of the first rule of this selector. */
function ruleOf(selector: string): Colours {
  const from = css.indexOf(`${selector} {`);
  return coloursOf(css.slice(from, css.indexOf('}', from)));
}

const LIGHT = ruleOf(':root');
const DARK = { ...LIGHT, ...ruleOf(":root[data-theme='dark']") };

/** Text colors and the surfaces on which they occur. */
const SURFACES = ['paper', 'side', 'raised', 'sunk'];
const PAIRS: [string, string][] = [
  ...['text', 'soft', 'faint', 'accent', 'good', 'tight', 'bad'].flatMap((name) =>
    SURFACES.map((surface): [string, string] => [name, surface]),
  ),
  ...['keyword', 'string', 'function', 'number', 'comment'].map((name): [string, string] => [`code-${name}`, 'sunk']),
  ...['text', 'soft', 'bad'].map((name): [string, string] => [name, 'hover']),
  ['accent', 'accent-soft'],
  ['text', 'accent-soft'],
  ['text', 'mark'],
  ['text', 'mark-now'],
  ['on-accent', 'accent'],
  ['on-accent', 'bad'],
];

/** Relative luminance, as WCAG 2 defines it. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [low = 0, high = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const LOOKS: [string, Colours][] = [
  ['light', LIGHT],
  ['dark', DARK],
  ...['ink', 'vivid'].flatMap((code): [string, Colours][] => [
    [`light, code ${code}`, { ...LIGHT, ...ruleOf(`:root[data-code='${code}']`) }],
    [`dark, code ${code}`, { ...DARK, ...ruleOf(`:root[data-theme='dark'][data-code='${code}']`) }],
  ]),
];

it('every look has colours of its own', () => {
  expect(new Set(LOOKS.map(([, colours]) => JSON.stringify(colours))).size).toBe(LOOKS.length);
});

describe.each(LOOKS)('%s', (_, colours) => {
  it.each(PAIRS)('%s on %s can be read (AA)', (words, surface) => {
    expect(contrast(colours[words] ?? '', colours[surface] ?? '')).toBeGreaterThanOrEqual(4.5);
  });
});

/** The color that is seen where the scrim of a rule lies over this one. */
function under(selector: string, colour: string): string {
  const rule = css.slice(css.indexOf(`${selector} {`));
  const [, tint = '', share = ''] = /--scrim: rgb\(([\d ]+) \/ (\d+)%\);/.exec(rule) ?? [];
  const mixed = tint.split(' ').map((value, at) => {
    const below = parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
    return Math.round(below + (Number(value) - below) * (Number(share) / 100));
  });
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

it.each([
  [':root', LIGHT],
  [":root[data-theme='dark']", DARK],
])('what lies behind a sheet of %s rests: it is seen and not read, and the sheet stands out', (selector, colours) => {
  const [words = '', paper = '', raised = ''] = [colours['text'], colours['paper'], colours['raised']];
  const [text, page] = [under(selector, words), under(selector, paper)];
  expect(contrast(text, page)).toBeLessThan(2);
  expect(contrast(text, page)).toBeGreaterThan(1.2);
  expect(contrast(raised, page)).toBeGreaterThan(1.2);
});

it('letters are as heavy in the dark as in the light: all weights are named, and lighter where letters are', () => {
  const numbered = Object.entries(STYLES).filter(([, text]) => /font-weight: (?:\d|bold)/.test(text));
  expect(numbered.map(([path]) => path)).toEqual([]);
  const weights = (selector: string): number[] => {
    const rule = css.slice(css.indexOf(`${selector} {`), css.indexOf('}', css.indexOf(`${selector} {`)));
    const names = ['regular', 'medium', 'strong', 'bold'];
    return names.map((name) => Number(new RegExp(`--${name}: (\\d+);`).exec(rule)?.[1]));
  };
  const [light, dark] = [weights(':root'), weights(":root[data-theme='dark']")];
  expect(light).toEqual([400, 500, 600, 700]);
  // Renderers thicken letters the more, the lighter they are; macOS's own have this contrast.
  expect(contrast(DARK['text'] ?? '', DARK['paper'] ?? '')).toBeLessThan(13);
  for (const [place, weight] of dark.entries()) expect((weight ?? 0) / (light[place] ?? 1)).toBeCloseTo(0.95, 2);
});

it('white on black is as far apart as colours get', () => expect(contrast('#ffffff', '#000000')).toBeCloseTo(21));
