import { describe, expect, it } from 'vitest';

import { pieces } from './searchMarks';
import { matchesIn, readText, searchTerms } from './findText';

describe('words in a text', () => {
  it('are found whatever their case and accents, and told by places of the text as it is', () => {
    const text = '😀 Un CAFÉ, un cafe\u0301 décaféiné';
    expect(matchesIn(text, 'café').map(([from, to]) => text.slice(from, to))).toEqual(['CAFÉ', 'cafe\u0301', 'café']);
    expect(matchesIn('私は東京都に', '京都')).toEqual([[3, 5]]);
    expect(matchesIn('aaaa', 'aa')).toEqual([
      [0, 2],
      [2, 4],
    ]);
    expect(matchesIn('text', '')).toEqual([]);
    expect(matchesIn('text', '\u0301')).toEqual([]);
  });

  it('are those of the question, phrases together, signs left out', () => {
    expect(searchTerms('tea "green leaves" % -')).toEqual(['tea', 'green leaves']);
    expect(searchTerms('"')).toEqual([]);
  });

  it('are read through the signs of Markdown, whatever a model writes', () => {
    expect(readText('# Title\n**bold** words and [a link](https://example.org) `code`\n```rust\nfn x()\n```')).toBe(
      'Title\nbold words and [a link code\n\nfn x()\n',
    );
    // A cost that grew with the square of the length would end the test.
    for (const hostile of ['['.repeat(1_000_000), '![a]('.repeat(200_000), ']('.repeat(300_000)])
      expect(readText(hostile).length).toBeLessThanOrEqual(hostile.length);
  });

  it('are marked in pieces that make up the text', () => {
    expect(pieces('green tea', [[6, 9]])).toEqual([
      { text: 'green ', marked: false },
      { text: 'tea', marked: true },
    ]);
    expect(
      pieces('tea', [
        [0, 2],
        [1, 3],
      ])
        .map(({ text }) => text)
        .join(''),
    ).toBe('tea');
    expect(pieces('', [])).toEqual([]);
  });
});
