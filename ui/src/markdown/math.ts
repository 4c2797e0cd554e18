/** Formulas: how they are found in Markdown, and KaTeX, which is read the first time one is met. */

import type { MarkedExtension, Tokens } from 'marked';

import { escapeHtml } from './highlight';
import { formulaAt, LONGEST_FORMULA } from './sections';

/** A formula in a token list. */
export interface MathToken extends Tokens.Generic {
  type: 'math';
  tex: string;
  display: boolean;
}

// A dollar opens if no blank follows, and closes if no blank precedes it and no digit follows, so prices stay prices.
const INLINE = /^\$(?![\s$])((?:\\[^]|[^\\$])+?)(?<!\s)\$(?!\d)/;
const INLINE_DISPLAY = /^\$\$((?:\\[^]|[^\\$])+?)\$\$/;
const ROUND = /^\\\(([^]+?)\\\)/;
const SQUARE = /^\\\[([^]+?)\\\]/;

function token(raw: string, tex: string, display: boolean): MathToken {
  return { type: 'math', raw, tex: tex.trim(), display };
}

/** Adds `$…$`, `$$…$$`, `\(…\)` and `\[…\]` to marked; `render` returns the HTML. */
export function mathExtension(render: (tex: string, display: boolean) => string): MarkedExtension {
  const renderer = (generic: Tokens.Generic) => render(String(generic.tex), generic.display === true);
  return {
    extensions: [
      {
        name: 'math',
        level: 'block',
        start: (source) =>
          source.includes('$$') || source.includes('\\[') ? source.match(/^ {0,3}(?:\$\$|\\\[)/m)?.index : undefined,
        tokenizer(source) {
          const formula = formulaAt(source);
          return formula ? token(source.slice(0, formula.end), formula.tex, true) : undefined;
        },
        renderer,
      },
      {
        name: 'math',
        level: 'inline',
        start: (source) => source.match(/\$|\\[([]/)?.index,
        tokenizer(source) {
          for (const [pattern, display] of [
            [INLINE_DISPLAY, true],
            [INLINE, false],
            [ROUND, false],
            [SQUARE, true],
          ] as const) {
            const match = pattern.exec(source);
            if (match) return token(match[0], match[1] ?? '', display);
          }
          return undefined;
        },
        renderer,
      },
    ],
  };
}

type Typeset = (tex: string, display: boolean) => string;
let typeset: Typeset | null = null;

/** Loads KaTeX. Its output needs its style sheet, which the page loads. */
export async function loadTypesetter(): Promise<void> {
  const { default: katex } = await import('katex');
  // Errors show the source in the text's own color; `trust` stays off, so that no formula creates a link or loads an
  // image.
  typeset = (tex, displayMode) =>
    katex.renderToString(tex, {
      displayMode,
      throwOnError: false,
      errorColor: 'inherit',
      strict: 'ignore',
      trust: false,
      maxSize: 40,
      maxExpand: 500,
    });
}

/**
 * KaTeX's HTML, not yet sanitized; `null` until {@link loadTypesetter} has ended. A formula out of proportion stays as
 * it is written.
 */
export function mathHtml(tex: string, display: boolean): string | null {
  if (!typeset) return null;
  try {
    if (tex.length <= LONGEST_FORMULA) return typeset(tex, display);
  } catch {
    // KaTeX calls itself for each group, and may run out of stack.
  }
  return `<span class="katex-error">${escapeHtml(tex)}</span>`;
}
