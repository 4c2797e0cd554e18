import { describe, expect, it } from 'vitest';

import { MarkdownText } from './markdown';

const html = (text: string): string[] => new MarkdownText().update(text, true).map((block) => block.html ?? '');

describe('a footnote', () => {
  it('is raised in its text and small below', () => {
    expect(html('Tea is hot.[^1]\n\n[^1]: Not **always**,\nas is known.\n\nMore.')).toEqual([
      '<p>Tea is hot.<sup>[1]</sup></p>\n',
      '<p><small><sup>[1]</sup> Not <strong>always</strong>,<br>as is known.</small></p>\n',
      '<p>More.</p>\n',
    ]);
  });

  it('ends where the next one begins', () => {
    expect(html('[^a]: one\n[^b]: two')).toEqual([
      '<p><small><sup>[a]</sup> one</small></p>\n',
      '<p><small><sup>[b]</sup> two</small></p>\n',
    ]);
  });

  it('is no place for tags, and costs no more than its length', () => {
    expect(html('a[^<img/onerror=alert(1)>] b')[0]).not.toContain('<img');
    const many = '[^'.repeat(20_000);
    expect(html(many).join('').length).toBeLessThan(10 * many.length);
  });
});
