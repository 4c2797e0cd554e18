import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MarkdownText, MOST_BLOCKS, STEP } from './markdown';
import { lex } from './markdownDraft';

/** Texts that cost a parser of Markdown more than their length, each about `n` characters long. */
const FAMILIES: Record<string, (n: number) => string> = {
  'open brackets': (n) => '['.repeat(n),
  'brackets in brackets': (n) => '['.repeat(n / 2) + ']'.repeat(n / 2),
  'open links': (n) => '[a]('.repeat(n / 4),
  'links without an end, with one ahead': (n) => `${'[a](b "'.repeat(n / 7)})`,
  'open pictures': (n) => '![['.repeat(n / 3),
  'references': (n) => '[a] '.repeat(n / 4),
  'definitions and references': (n) => Array.from({ length: n / 18 }, (_, index) => `[${index}]: b\n\n[${index}]\n\n`).join(''),
  'stars': (n) => '*a _b **c '.repeat(n / 10),
  'stars without a blank': (n) => `${'*'.repeat(n)}a`,
  'tildes': (n) => '~~a '.repeat(n / 4),
  'backticks of every length': (n) => Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `${'`'.repeat(index)} `).join(''),
  'open tags': (n) => '<a '.repeat(n / 3),
  'open instructions': (n) => 'a <? <!A <![CDATA[ <!-- '.repeat(n / 23),
  'nested tags': (n) => '<b>'.repeat(n / 3),
  'backslashes': (n) => '\\'.repeat(n),
  'a wide gap': (n) => `a${' '.repeat(n)}b`,
  'gaps at the ends of lines': (n) => `a${' '.repeat(40)}\n`.repeat(n / 42),
  'ampersands': (n) => '&#'.repeat(n / 2),
  'addresses': (n) => 'a@a.'.repeat(n / 4),
  'web addresses': (n) => 'http://www.a(.'.repeat(n / 14),
  'paragraphs': (n) => 'a\n\n'.repeat(n / 3),
  'one paragraph of short lines': (n) => 'a\n'.repeat(n / 2),
  'quotations in quotations': (n) => '>'.repeat(n),
  'quotations, each deeper': (n) => Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `${'>'.repeat(index)} a\n`).join(''),
  'items in items': (n) => '- '.repeat(n / 2),
  'items, each deeper': (n) => Array.from({ length: Math.sqrt(n) }, (_, index) => `${' '.repeat(2 * index)}- a\n`).join(''),
  'items': (n) => '- a\n'.repeat(n / 4),
  'loose items': (n) => '1. a\n\n'.repeat(n / 6),
  'items with open fences': (n) => '- ```\n'.repeat(n / 6),
  'a wide table': (n) => `${'|a'.repeat(n / 6)}|\n${'|-'.repeat(n / 6)}|\n${'|b'.repeat(n / 6)}|\n`,
  'a long table': (n) => `|a|b|\n|-|-|\n${'|1|[|\n'.repeat(n / 6)}`,
  'rules': (n) => 'a\n***\n'.repeat(n / 6),
  'underlines': (n) => `${'a\n'.repeat(n / 2)}---`,
  'open formulas': (n) => '\\[\n'.repeat(n / 3),
  'dollars': (n) => '$a '.repeat(n / 3),
  'open round formulas': (n) => '\\(a '.repeat(n / 4),
  'blocks of HTML': (n) => '<div>\n\n'.repeat(n / 7),
  'open comments': (n) => '<!--\n'.repeat(n / 5),
  'one fence': (n) => `\`\`\`rust\n${'fn a() {}\n'.repeat(n / 10)}`,
  'fences of every length': (n) => Array.from({ length: Math.sqrt(2 * n) }, (_, index) => `~~~${'~'.repeat(index)}\n`).join(''),
  'blank lines': (n) => `a${'\n'.repeat(n)}b`,
};

/** Characters that were given to regular expressions, which is what a lexer's work is made of. */
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

describe.each(Object.entries(FAMILIES))('%s', (_, family) => {
  it('cost in proportion to their length, up to a megabyte', () => {
    const [small, large] = [family(1 << 16), family(1 << 20)].map((text) => ({
      work: workOf(() => lex(text, {})),
      length: text.length,
    }));
    if (!small || !large) throw new Error('nothing was lexed');
    expect(large.work / large.length).toBeLessThan(1.5 * (small.work / small.length) + 100);
    expect(large.work / large.length).toBeLessThan(20_000);
  });
});
