import { Lexer } from 'marked';
import { expect, it, vi } from 'vitest';

import { MarkdownText } from './markdown';

it('reads only the open block again while an answer grows', () => {
  const block = 'Some words of an answer, with `code`, **marks** and [a link](https://example.org) in it.\n\n';
  const text = block.repeat(200);
  const read = vi.spyOn(Lexer.prototype, 'blockTokens');
  const markdown = new MarkdownText();
  let most = 0;
  for (let length = 40; length <= text.length; length += 40) {
    read.mockClear();
    markdown.update(text.slice(0, length), false);
    most = Math.max(
      most,
      read.mock.calls.reduce((sum, [source]) => sum + source.length, 0),
    );
  }
  read.mockRestore();
  // The block that ends, the one that begins, and the added ones.
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(4 * block.length);
});
