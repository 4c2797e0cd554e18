import { Lexer } from 'marked';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { blockOf, MarkdownText, STEP, STEP_BLOCKS } from './markdown';
import { draftWhole, lex, MOST_BLOCKS, visible } from './markdownDraft';
import { chunksOf, CHUNK } from '../design/chunks';
import { DEEPEST, LONGEST_SECTION, PART_ROWS, sectionsOf } from './sections';

/** Texts that cost a parser of Markdown more than their length, each about `n` characters long. */
const FAMILIES: Record<string, (n: number) => string> = {
  'open brackets': (n) => '['.repeat(n),
  'brackets in brackets': (n) => '['.repeat(n / 2) + ']'.repeat(n / 2),
  'open links': (n) => '[a]('.repeat(n / 4),
  'links without an end, with one ahead': (n) => `${'[a](b "'.repeat(n / 7)})`,
  'open images': (n) => '![['.repeat(n / 3),
  references: (n) => '[a] '.repeat(n / 4),
  'definitions and references': (n) =>
    Array.from({ length: n / 18 }, (_, index) => `[${index}]: b\n\n[${index}]\n\n`).join(''),
  stars: (n) => '*a _b **c '.repeat(n / 10),
  'stars without a blank': (n) => `${'*'.repeat(n)}a`,
  tildes: (n) => '~~a '.repeat(n / 4),
  'backticks of every length': (n) =>
    Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `${'`'.repeat(index)} `).join(''),
  'open tags': (n) => '<a '.repeat(n / 3),
  'open instructions': (n) => 'a <? <!A <![CDATA[ <!-- '.repeat(n / 23),
  'nested tags': (n) => '<b>'.repeat(n / 3),
  backslashes: (n) => '\\'.repeat(n),
  'a wide gap': (n) => `a${' '.repeat(n)}b`,
  'gaps at the ends of lines': (n) => `a${' '.repeat(40)}\n`.repeat(n / 42),
  ampersands: (n) => '&#'.repeat(n / 2),
  addresses: (n) => 'a@a.'.repeat(n / 4),
  'web addresses': (n) => 'http://www.a(.'.repeat(n / 14),
  paragraphs: (n) => 'a\n\n'.repeat(n / 3),
  'one paragraph of short lines': (n) => 'a\n'.repeat(n / 2),
  'quotations in quotations': (n) => '>'.repeat(n),
  'quotations, each deeper': (n) =>
    Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `${'>'.repeat(index)} a\n`).join(''),
  'items in items': (n) => '- '.repeat(n / 2),
  'items, each deeper': (n) =>
    Array.from({ length: Math.sqrt(n) }, (_, index) => `${' '.repeat(2 * index)}- a\n`).join(''),
  items: (n) => '- a\n'.repeat(n / 4),
  'loose items': (n) => '1. a\n\n'.repeat(n / 6),
  'items with open fences': (n) => '- ```\n'.repeat(n / 6),
  'a wide table': (n) => `${'|a'.repeat(n / 6)}|\n${'|-'.repeat(n / 6)}|\n${'|b'.repeat(n / 6)}|\n`,
  'a long table': (n) => `|a|b|\n|-|-|\n${'|1|[|\n'.repeat(n / 6)}`,
  rules: (n) => 'a\n***\n'.repeat(n / 6),
  underlines: (n) => `${'a\n'.repeat(n / 2)}---`,
  'open formulas': (n) => '\\[\n'.repeat(n / 3),
  dollars: (n) => '$a '.repeat(n / 3),
  'open round formulas': (n) => '\\(a '.repeat(n / 4),
  'blocks of HTML': (n) => '<div>\n\n'.repeat(n / 7),
  'open comments': (n) => '<!--\n'.repeat(n / 5),
  'one fence': (n) => `\`\`\`rust\n${'fn a() {}\n'.repeat(n / 10)}`,
  'fences of every length': (n) =>
    Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `~~~${'~'.repeat(index)}\n`).join(''),
  'blank lines': (n) => `a${'\n'.repeat(n)}b`,
};

/** Characters that were given to regular expressions, which do most of a lexer's work. */
let scanned = 0;
const { exec } = RegExp.prototype;

beforeAll(() => {
  RegExp.prototype.exec = function (text) {
    scanned += text.length;
    return exec.call(this, text);
  };
});
afterAll(() => {
  RegExp.prototype.exec = exec;
});

function workOf(run: () => void): number {
  scanned = 0;
  run();
  return scanned;
}

describe('a hostile text', () => {
  it.each(Object.entries(FAMILIES))('of %s costs in proportion to its length, up to a megabyte', (_, family) => {
    const [small, large] = [family(1 << 16), family(1 << 20)].map((text) => ({
      work: workOf(() => lex(text, {})),
      length: text.length,
    }));
    if (!small || !large) throw new Error('nothing was lexed');
    expect(large.work / large.length).toBeLessThan(1.5 * (small.work / small.length) + 100);
    expect(large.work / large.length).toBeLessThan(20_000);
  });
});

describe('a frame', () => {
  it.each(Object.entries(FAMILIES))('of %s reads no more than its share, whatever comes at once', (_, family) => {
    const text = new MarkdownText();
    const source = family(1 << 17);
    let frames = 0;
    let drawn = 0;
    do {
      const work = workOf(() => {
        const now = text.update(source, false).length;
        expect(now - drawn).toBeLessThanOrEqual(STEP_BLOCKS + 1);
        drawn = now;
      });
      expect(work).toBeLessThan(20_000 * (STEP + LONGEST_SECTION));
      frames += 1;
    } while (text.behind && frames < 200);
    expect(text.behind).toBe(false);
  });

  it('reads the open block alone while a text streams', () => {
    const paragraph = 'Some **words** of a paragraph, with `code` and [a link](https://example.org).\n\n';
    const text = new MarkdownText();
    const work = (paragraphs: number): number => {
      const before = paragraph.repeat(paragraphs);
      do text.update(before, false);
      while (text.behind);
      return workOf(() => text.update(`${before}And **more`, false));
    };
    const [few, many] = [work(4), work(400)];
    expect(many).toBeLessThan(1.1 * few + 100);
  });
});

describe('what is out of proportion', () => {
  const kinds = (source: string): string[] => new MarkdownText().update(source, true).map((block) => block.kind);

  it.each([
    ['long', 'word '.repeat(LONGEST_SECTION / 5 + 1)],
    ['deep', `${Array.from({ length: DEEPEST + 2 }, (_, index) => `${'  '.repeat(index)}- a`).join('\n')}\n`],
    ['full of marks', '*a* '.repeat(300)],
    ['too deep for the stack', '>'.repeat(10_000)],
  ])('because it is %s stays as it is written, and what is around it does not', (_, source) => {
    const blocks = new MarkdownText().update(`# Before\n\n${source}\n\n**after**\n`, true);
    expect(blocks.map((block) => block.kind)).toEqual(['html', 'plain', 'html']);
    expect(blocks[1]?.source.trimEnd()).toBe(source.trimEnd());
    expect(blocks[2]?.html).toContain('<strong>after</strong>');
  });

  it('leaves ordinary long texts as they are: a list, a table, a chapter', () => {
    expect(
      kinds(Array.from({ length: 200 }, (_, index) => `${index + 1}. **Item** with \`code\` and words\n`).join('')),
    ).toEqual(['html']);
    const table = `| a | b |\n|---|---|\n${'| **1** | `2` |\n'.repeat(6 * PART_ROWS)}`;
    expect(kinds(table)).toEqual(Array(6).fill('html'));
    expect(
      new Set(kinds('A paragraph of *some* length, as they are written. '.repeat(30).concat('\n\n').repeat(40))),
    ).toEqual(new Set(['html']));
    expect(kinds(`\`\`\`rust\n${'let a = [b];\n'.repeat(5000)}\`\`\`\n`)).toEqual(['code']);
  });

  it('draws no more blocks than a window can hold', async () => {
    const drafts = await draftWhole('a\n\n'.repeat(50_000));
    expect(drafts).toHaveLength(MOST_BLOCKS + 1);
    expect(drafts.at(-1)?.kind).toBe('plain');
    const growing = new MarkdownText();
    do growing.update('a\n\n'.repeat(50_000), false);
    while (growing.behind);
    expect(growing.update('a\n\n'.repeat(50_000), false).length).toBeLessThan(MOST_BLOCKS + STEP_BLOCKS);
  });

  it('is not lost: sections and pieces hold every character', () => {
    for (const family of Object.values(FAMILIES)) {
      const source = family(20_000);
      expect([...sectionsOf(source)].map((section) => section.source).join('')).toBe(source);
      const pieces = chunksOf(source);
      expect(pieces.every((piece) => piece.length <= CHUNK)).toBe(true);
      expect(pieces.join('').replaceAll('\n', '')).toBe(source.replaceAll('\n', ''));
    }
  });
});

describe('sections', () => {
  it.each([
    'a\n\n- b\n\n  c\n\n- d\n\ne\n\n    f\n\ng\n',
    '> a\n\n> b\n\n| a |\n|---|\n| b |\n\n1. c\n\n   ```\n   d\n\n   e\n   ```\n2. f\n',
    '```\na\n\nb\n```\nc\n~~~js\nd\n\n~~~\n\n<pre>\na\n\nb</pre>\n\n<!-- a\n\nb -->\nc\n',
    'a [b]\n\n[b]: https://example.org\n\n$$\nx\n\ny\n$$\n\nc\n---\n\nd\n\n***\n',
    '- a\n```\nb\n```\n- c\n\n# d\n\n    e\n\n    f\n',
  ])('of %j are lexed to what the whole is lexed to', (source) => {
    const whole = new Lexer({ gfm: true, breaks: true })
      .lex(source)
      .filter(({ type }) => type !== 'space' && type !== 'def');
    const blocks = lex(source, {}).tokens.filter(visible);
    const words = (tokens: readonly { raw: string }[]): string[] => tokens.map(({ raw }) => raw.trimEnd());
    if (!source.includes('$$')) expect(words(blocks)).toEqual(words(whole));
    expect(blocks.map(({ raw }) => raw.trim()).every((raw) => source.includes(raw))).toBe(true);
  });
});

it('a draft is sanitised once', async () => {
  const [draft] = await draftWhole('<b onclick="x()">a</b>');
  if (!draft) throw new Error('no draft');
  expect(blockOf(draft)).toBe(blockOf(draft));
  expect(blockOf(draft).html).toBe('<p><b>a</b></p>\n');
});
