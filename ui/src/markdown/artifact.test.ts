import { describe, expect, it } from 'vitest';

import HOSTILE from '../testing/hostileArtifacts.md?raw';
import { artifactKind, artifactOf, artifactsIn, isClosed } from './artifact';

describe('the kind of an artifact', () => {
  it.each([
    ['html', '<p>hello</p>', 'html'],
    ['HTML', '<p>hello</p>', 'html'],
    ['svg', '<svg/>', 'svg'],
    ['mermaid', 'graph TD', 'mermaid'],
    ['', '<!doctype html><p>', 'html'],
    ['text', '\n <!DOCTYPE HTML>\n<p>', 'html'],
    ['xml', '<?xml version="1.0"?>\n<svg width="1">', 'svg'],
    ['xml', '<note/>', null],
    ['', '<p>hello</p>', null],
    ['js', '<!doctype html>', null],
    ['jsx', 'export default () => <p/>', null],
    ['html', '  \n', null],
    ['html', 'x'.repeat(1_000_001), null],
  ])('of %s is told by its label, or by what it begins with', (label, code, kind) => {
    expect(artifactKind(label, code)).toBe(kind);
  });
});

describe('the title of an artifact', () => {
  it.each([
    ['html', '<html><title>Fish &amp; chips</title>', 'Fish & chips'],
    ['html', '<title>\n  two\n lines </title>', 'two lines'],
    ['html', '<title></title>', ''],
    ['html', '<h1>none</h1>', ''],
    ['svg', '<svg><title>Wave</title></svg>', 'Wave'],
    ['mermaid', '---\ntitle: A day\n---\ngraph TD', 'A day'],
    ['mermaid', 'gantt\n  title Plan\n', 'Plan'],
    ['mermaid', 'pie title Shares\n', 'Shares'],
    ['mermaid', 'graph TD', ''],
  ] as const)('of %s is what it says itself', (kind, code, title) => {
    expect(artifactOf(kind, code).title).toBe(title);
  });

  it('is found in hostile code at once, and is short', () => {
    const began = performance.now();
    for (const code of ['<title'.repeat(150_000), `<title ${' '.repeat(900_000)}`, 'title '.repeat(150_000), '\t'.repeat(900_000)])
      for (const kind of ['html', 'svg', 'mermaid'] as const) expect(artifactOf(kind, code).title.length).toBeLessThanOrEqual(200);
    expect(artifactOf('html', `<title>${'x'.repeat(5000)}</title>`).title).toHaveLength(200);
    expect(performance.now() - began).toBeLessThan(2000);
  });
});

describe('the artifacts of an answer', () => {
  it('are its blocks in their order, lists and quotations aside', () => {
    const found = artifactsIn('Here:\n\n```html\n<title>A</title>\n```\n\n```js\n1\n```\n\n~~~svg\n<svg/>\n~~~\n\n> ```html\n> <p>\n> ```\n', false);
    expect(found.map(({ kind, name }) => [kind, name])).toEqual([
      ['html', 'A'],
      ['svg', '#1'],
    ]);
    expect(found[0]?.code).toBe('<title>A</title>');
  });

  it('are told apart by their place if they have no title', () => {
    const names = artifactsIn('```svg\n<svg/>\n```\n\n```html\n<p>\n```\n\n```svg\n<svg></svg>\n```', false).map(({ name }) => name);
    expect(names).toEqual(['#1', '#1', '#2']);
  });

  it('are finished: a growing one is none, one that was cut is', () => {
    const text = '```html\n<p>one</p>\n```\n\n```html\n<p>tw';
    expect(artifactsIn(text, true)).toHaveLength(1);
    expect(artifactsIn(text, false)).toHaveLength(2);
    expect(artifactsIn('````html\n<pre>\n```\n', true)).toHaveLength(0);
    expect(artifactsIn('no code', false)).toEqual([]);
  });

  it.each([
    ['```html\n<p>\n```', true],
    ['```html\n<p>\n```\n\n', true],
    ['````html\n```', false],
    ['~~~\nx\n```', false],
    ['```', false],
    ['```html', false],
    ['    indented', true],
  ])('%j is closed: %s', (source, closed) => {
    expect(isClosed(source)).toBe(closed);
  });
});

describe('the hostile artifacts of the tests', () => {
  it('are sixty at least, each of which the window would open', () => {
    const headings = HOSTILE.match(/^## .+$/gm) ?? [];
    const artifacts = artifactsIn(HOSTILE, false);
    expect(headings.length).toBeGreaterThanOrEqual(60);
    expect(new Set(headings).size).toBe(headings.length);
    expect(artifacts).toHaveLength(headings.length);
  });
});
