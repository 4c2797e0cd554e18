import { beforeAll, describe, expect, it } from 'vitest';

import blockList from './BlockList.svelte?raw';
import { loadGrammar } from './highlight';
import { MarkdownText, type Block } from './markdown';
import { completeMarks } from './markdownDraft';
import { loadTypesetter } from './math';
import { PART_ROWS } from './sections';

const MIXED = `# Squares

A table of **squares**, as [asked](https://example.org):

| n | square |
|---|-------:|
| 1 | 1 |
| 2 | 4 |

1. Install it
   \`\`\`bash
   cargo add squares
   \`\`\`
2. Use it

   with care

- [x] done
- [ ] open

\`\`\`rust
fn square(n: u32) -> u32 {
    n * n // Not more.
}
\`\`\`

> A quotation
> of two lines

The sum is $\\sum_{i=1}^4 i^2$, or:

$$
1 + 4 + 9 + 16 = 30
$$

Setext
------

Last words.
`;

const sourceOf = (block: Block): string => block.source;

function html(source: string): string {
  return new MarkdownText()
    .update(source, true)
    .map((block) => block.html ?? '')
    .join('');
}

function element(source: string): HTMLElement {
  const div = document.createElement('div');
  div.innerHTML = html(source);
  return div;
}

describe('a growing text', () => {
  it.each([
    ['a list', '- a\n- b\n\n  c\n1. d\n2. e\n'],
    ['code in a list', '1. a\n   ```sh\n   ls\n   ```\n2. b\n'],
    ['a heading by underlining', 'a\n\nb\n---\nc\n===\n'],
    ['a table', 'a\n\n|a|b|\n|-|-|\n|1|2|\n\nb\n'],
    ['a quotation', '> a\nb\n\n> c\n- d\n'],
    ['formulas', 'a\n\n$$\nx\n$$\n\n\\[ y \\]\nb\n'],
    ['fences', '```\na\n\nb\n```\nc\n~~~js\nd\n'],
    ['HTML', '<details>\n<summary>a</summary>\n\nb\n\n</details>\n'],
  ])('%s has the same blocks, whatever piece has come', (_, source) => {
    const text = new MarkdownText();
    for (let end = 1; end <= source.length; end++) {
      const prefix = source.slice(0, end);
      expect(text.update(prefix, false).map(sourceOf)).toEqual(new MarkdownText().update(prefix, true).map(sourceOf));
    }
  });

  it('a long table has the same parts, whatever piece of its next one has come', () => {
    const source = `a\n|a|b|\n|-|-|\n${'|1|2|\n'.repeat(2 * PART_ROWS + 3)}> b\n`;
    const text = new MarkdownText();
    for (const part of [1, 2]) {
      const near = 'a\n|a|b|\n|-|-|\n'.length + part * PART_ROWS * '|1|2|\n'.length;
      for (let end = near - 3; end <= Math.min(near + 24, source.length); end++) {
        const prefix = source.slice(0, end);
        const shown = ({ source, head }: Block): unknown[] => [source, head];
        expect(text.update(prefix, false).map(shown)).toEqual(new MarkdownText().update(prefix, true).map(shown));
      }
    }
    const [, ...parts] = text.update(source, false);
    expect(parts.map(({ head, source }) => [head, source.split('\n').length - 1])).toEqual([
      [null, 2 + PART_ROWS],
      ['|a|b|\n|-|-|\n', PART_ROWS],
      ['|a|b|\n|-|-|\n', 3],
      [null, 1],
    ]);
  });

  it('ends as the text read at once', () => {
    const text = new MarkdownText();
    for (let end = 5; end < MIXED.length; end += 5) text.update(MIXED.slice(0, end), false);
    const shown = (block: Block) => [block.kind, block.html];
    expect(text.update(MIXED, false).map(sourceOf)).toEqual(new MarkdownText().update(MIXED, true).map(sourceOf));
    expect(text.update(MIXED, true).map(shown)).toEqual(new MarkdownText().update(MIXED, true).map(shown));
  });

  it('never makes a settled block again', () => {
    const text = new MarkdownText();
    const seen = new Map<number, Block>();
    for (let end = 1; end <= MIXED.length; end++) {
      const blocks = text.update(MIXED.slice(0, end), false);
      for (const [index, block] of blocks.slice(0, -2).entries()) {
        expect(seen.get(index) ?? block).toBe(block);
        seen.set(index, block);
      }
    }
    expect(seen.size).toBeGreaterThan(8);
  });

  it('that is replaced by another is read anew', () => {
    const text = new MarkdownText();
    text.update('One\n\nTwo\n\nThree', false);
    expect(text.update('Other\n\nwords', false).map((block) => block.html)).toEqual([
      '<p>Other</p>\n',
      '<p>words</p>\n',
    ]);
  });

  it('resolves a link that is defined at the end once it is finished', () => {
    const source = 'See [the book][1].\n\n[1]: https://example.org/book\n';
    const text = new MarkdownText();
    text.update(source, false);
    expect(text.update(source, true)[0]?.html).toContain('href="https://example.org/book"');
  });

  it('shows no mark whose end is still awaited', () => {
    expect(new MarkdownText().update('347 + 589 = **93', false)[0]?.html).toBe(
      '<p>347 + 589 = <strong>93</strong></p>\n',
    );
  });

  it('colours a fence only when it is closed', async () => {
    await loadGrammar('rust');
    const text = new MarkdownText();
    expect(text.update('```rust\nfn a() {}\n', false)[0]).toMatchObject({
      kind: 'code',
      label: 'rust',
      code: 'fn a() {}',
      html: null,
    });
    expect(text.update('```rust\nfn a() {}\n```\n', false)[0]?.html).toContain('<span class="t-keyword">fn</span>');
  });
});

describe('marks that are still open', () => {
  it.each([
    ['a **b', 'a **b**'],
    ['a **', 'a '],
    ['a *', 'a *'],
    ['a **b*', 'a **b**'],
    ['a `b', 'a `b`'],
    ['a `', 'a '],
    ['`**` b', '`**` b'],
    ['~~gone', '~~gone~~'],
    ['**a**\nplain', '**a**\nplain'],
    ['2 * 3', '2 * 3'],
  ])('%j becomes %j', (source, expected) => expect(completeMarks(source)).toBe(expected));
});

describe('HTML in an answer', () => {
  it.each([
    ['<script>alert(1)</script>', 'script'],
    ['<img src="https://example.org/x.png" onerror="alert(1)">', 'img'],
    ['![A cat](https://example.org/cat.png)', 'img'],
    ['<iframe src="https://example.org"></iframe>', 'iframe'],
    ['<form><input name="a"><button>Go</button></form>', 'form, input, button'],
    ['<style>body{display:none}</style>', 'style'],
    ['<svg onload="alert(1)"></svg>', 'svg'],
    ['<p style="position:fixed" class="toast" id="app" onclick="x()">x</p>', '[style], [class], [id], [onclick]'],
    ['[x](javascript:alert(1))', '[href]'],
    ['<a href="data:text/html,x">x</a>', '[href]'],
    ['<a href="//example.org/x">x</a>', '[href]'],
    ['<span data-slot="0">x</span>', '.code'],
    ['<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>', 'math, style, img'],
  ])('%s loses %s', (source, forbidden) => expect(element(source).querySelector(forbidden)).toBeNull());

  it.each([
    '<template>its words</template>',
    '<template>\n  <b>x</b>\n</template>',
    'Put it into <template id="a">its words</template> below.',
    'A Vec<T> and a Map<String, Vec<u8>> in a sentence.',
    '<div class="a">\n  <custom-part>x</custom-part>\n</div>',
    '<!-- a remark -->',
    'before <!-- a remark --> after',
    '<!DOCTYPE html>',
    '<?php echo 1 ?>',
    '<script>if (a < b) c();</script>',
    'words, <style>b { color: red }</style> and <script>if (a<b) c();</script> more',
    '<img src="https://example.org/x.png" alt="x">',
    '<p title="never closed',
  ])('%s is shown as it is written', (source) => {
    expect(element(source).textContent?.replace(/\s+/g, ' ').trim()).toBe(source.replace(/\s+/g, ' '));
  });

  it('cannot end the table around it', () => {
    const table = element('| a |\n|---|\n| x</td></tr></table><h1>y |\n| z |').querySelectorAll('table td');
    expect([...table].map((cell) => cell.textContent)).toEqual(['x</td></tr></table>y', 'z']);
  });

  it('keeps what Markdown has no word for', () => {
    expect(element('H<sub>2</sub>O and <kbd>Esc</kbd>').querySelectorAll('sub, kbd')).toHaveLength(2);
  });

  it('shows an image as a link with its words', () => {
    const link = element('![A <cat>](https://example.org/cat.png)').querySelector('a');
    expect(link?.getAttribute('href')).toBe('https://example.org/cat.png');
    expect(link?.textContent).toBe('A <cat> (example.org)');
  });

  it('cannot break out of a code block', async () => {
    await loadGrammar('html');
    const source = '- a\n  ```html\n  </code><img src=x onerror=alert(1)>\n  ```\n';
    expect(element(source).querySelector('img')).toBeNull();
    expect(element(source).querySelector('code')?.textContent).toBe('</code><img src=x onerror=alert(1)>');
  });
});

describe('what chat models write', () => {
  it('ticks task lists', () => {
    const ticks = [...element('- [x] a\n- [ ] b').querySelectorAll('.tick')];
    expect(ticks.map((tick) => tick.getAttribute('data-done'))).toEqual(['true', 'false']);
  });

  it('strikes out between two tildes, not between single ones', () => {
    expect(html('H~2~O is ~~gone~~')).toBe('<p>H~2~O is <del>gone</del></p>\n');
  });

  it('keeps single line breaks', () => expect(html('roses\nviolets')).toBe('<p>roses<br>violets</p>\n'));

  it('lets tables scroll on their own', () => {
    expect(element('|a|\n|-:|\n|1|').querySelector('figure > table td')?.getAttribute('align')).toBe('right');
  });

  it('makes tables as wide as what is in them', () => {
    expect(blockList).toMatch(/\n {4}table \{/);
    expect(/\n {4}table \{[^}]*\}/.exec(blockList)?.[0]).not.toContain('width');
  });

  it('reads a table of 2,000 rows in parts, each under its head', () => {
    const row = (index: number): string => `| **${index}** | [a](https://example.org) | \`c\` | plain words |\n`;
    const rows = Array.from({ length: 2000 }, (_, at) => row(at)).join('');
    const source = `Rows:\n| a | b | c | d |\n|---|--:|---|---|\n${rows}\nEnd.\n`;
    const blocks = new MarkdownText().update(source, true);
    expect(new Set(blocks.map(({ kind }) => kind))).toEqual(new Set(['html']));
    const parts = blocks.flatMap((block) => (block.kind === 'html' && block.rows > 0 ? [block] : []));
    expect(parts.reduce((sum, { rows }) => sum + rows, 0)).toBe(2000);
    expect(Math.max(...parts.map(({ rows }) => rows))).toBeLessThanOrEqual(PART_ROWS);
    expect(parts.map(({ head }) => head !== null)).toEqual(parts.map((_, index) => index > 0));
    expect(parts.at(-1)?.html).toContain('<td><strong>1999</strong></td>');
    expect(parts.every((part) => part.html.includes('<th align="right">b</th>'))).toBe(true);
    const lines = (text: string): string => text.replace(/\n+/g, '');
    expect(lines(blocks.map(sourceOf).join(''))).toBe(lines(source));
  });

  it('numbers a list from where it begins', () => {
    expect(element('3. c\n4. d').querySelector('ol')?.getAttribute('start')).toBe('3');
  });

  it('colours code inside lists and lets it be copied', async () => {
    await loadGrammar('bash');
    const box = element('1. run\n   ```sh\n   echo "hi"\n   ```\n').querySelector('li .code');
    expect(box?.querySelector('[data-copy]')).not.toBeNull();
    expect(box?.querySelector('.t-string')).not.toBeNull();
  });
});

describe('formulas', () => {
  beforeAll(loadTypesetter);

  it.each(['$x^2$', '\\(x^2\\)', '$$x^2$$', '\\[x^2\\]', 'so $$\nx^2\n$$ it is', '- then $x^2$'])(
    '%s is one',
    (source) => {
      const formula = element(source);
      expect(formula.querySelector('.katex')).not.toBeNull();
      expect(formula.querySelector('annotation')?.textContent).toBe('x^2');
    },
  );

  it.each(['It costs $5 and $10.', '$5-$10', 'a $ b $ c', '`$x$`', '```\n$x$\n```', '\\$x\\$'])(
    '%s is none',
    (source) => {
      expect(element(source).querySelector('.katex')).toBeNull();
    },
  );

  it('keep their lengths, which model HTML may not have', () => {
    expect(element('$\\frac{1}{2}$').querySelector('.katex [style]')).not.toBeNull();
  });

  it('that are broken show their source', () => {
    expect(element('$\\frac{1$').textContent).toContain('\\frac{1');
  });

  it('make no links and load nothing', () => {
    const formula = element('$\\href{https://example.org}{x}\\includegraphics{https://example.org/x.png}$');
    expect(formula.querySelector('a, img')).toBeNull();
  });
});
