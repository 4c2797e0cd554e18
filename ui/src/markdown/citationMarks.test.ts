import { afterEach, describe, expect, it, vi } from 'vitest';
import { flushSync, mount, unmount } from 'svelte';

import { citedNumbers, type Citations } from './citationMarks';
import { MarkdownText } from './markdown';
import Markdown from './Markdown.svelte';

let drawn: Record<string, unknown> | null = null;
afterEach(async () => {
  if (drawn) await unmount(drawn);
  drawn = null;
});

function htmlOf(text: string): HTMLElement {
  const element = document.createElement('div');
  element.innerHTML = new MarkdownText().update(text, true).map(({ html }) => html ?? '').join('');
  return element;
}

const marksIn = (text: string): string[] =>
  [...htmlOf(text).querySelectorAll<HTMLElement>('[data-cite]')].map(
    (mark) => `${mark.textContent}=${mark.dataset['cite']}`,
  );

describe('marks of citations', () => {
  it.each([
    ['It is so [3].', ['[3]=3']],
    ['So [1][2] and **so [4]**.', ['[1]=1', '[2]=2', '[4]=4']],
    ['So [1, 3] and [2-4].', ['[1=1', '3]=3', '[2-4]=2 3 4']],
    ['| a |\n|---|\n| b [1] |', ['[1]=1']],
  ])('%s are kept apart with the same letters', (text, expected) => {
    expect(marksIn(text)).toEqual(expected);
    expect(htmlOf(text).textContent?.includes('[1') || htmlOf(text).textContent?.includes('[3]')).toBe(true);
  });

  it.each([
    '`a[1]` is code.',
    '```\nlist[2] = 5\n```',
    'A [1](https://a.example) link.',
    'A [link [1]](https://a.example).',
    '[2]\n\n[2]: https://b.example',
    'Neither [x], [1.5], [], [1 of 2], [5-2] nor [12345].',
    'A note[^1].\n\n[^1]: Its text.',
    String.raw`Escaped \[1\].`,
  ])('%s has none', (text) => {
    expect(marksIn(text)).toEqual([]);
  });

  it('are counted without code', () => {
    expect(citedNumbers('So [3], [1, 3] and [5-6]. `x[9]`\n```\n[8]\n```')).toEqual([3, 1, 5, 6]);
    expect(citedNumbers('A [1](https://a.example), [40-2].')).toEqual([]);
  });

  it('of a hostile text take no longer than its length', () => {
    const begun = performance.now();
    for (const pattern of ['[1', '[1]', '[1,', '`', '[1 , ']) citedNumbers(pattern.repeat(100_000 / pattern.length));
    expect(performance.now() - begun).toBeLessThan(5000);
  });
});

describe('a text with citations', () => {
  function citations(): Citations {
    return {
      looks: vi.fn((_: string, marks: readonly (readonly number[])[]) =>
        marks.map(([number = 0]) => (number === 7 ? null : { label: `Source ${number}`, wrong: number === 2 })),
      ),
      point: vi.fn(),
      leave: vi.fn(),
      open: vi.fn(),
    };
  }

  function draw(text: string, of: Citations | null): HTMLElement[] {
    drawn = mount(Markdown, { target: document.body, props: { text, growing: false, citations: of } });
    flushSync();
    return [...document.querySelectorAll<HTMLElement>('[data-cite]')];
  }

  it('has buttons for its marks, which say where they lead', () => {
    const given = citations();
    const [one, two, seven] = draw('So [1], so [2] and so [7].', given);
    expect([one, two, seven].map((mark) => mark?.getAttribute('role'))).toEqual(['button', 'button', null]);
    expect(one?.getAttribute('aria-label')).toBe('Source 1');
    expect([one, two].map((mark) => mark?.hasAttribute('data-wrong'))).toEqual([false, true]);
    expect(document.querySelector('.markdown')?.textContent?.trim()).toBe('So [1], so [2] and so [7].');
    two?.click();
    expect(given.open).toHaveBeenCalledWith([2]);
    one?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    expect(given.open).toHaveBeenLastCalledWith([1]);
    one?.focus();
    expect(given.point).toHaveBeenCalledWith(one, [1], 'Source 1');
    one?.blur();
    expect(given.leave).toHaveBeenCalled();
    // A mark that cites nothing is a word.
    seven?.click();
    expect(given.open).toHaveBeenCalledTimes(2);
  });

  it('leaves its marks as they are written without passages', () => {
    const marks = draw('So [1].', null);
    expect(marks.map((mark) => mark.getAttribute('role'))).toEqual([null]);
  });
});
