import { describe, expect, it } from 'vitest';

import css from './app.css?raw';

type Colours = Record<string, string>;

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

it('white on black is as far apart as colours get', () => expect(contrast('#ffffff', '#000000')).toBeCloseTo(21));
