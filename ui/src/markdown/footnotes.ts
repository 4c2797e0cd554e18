/**
 * Footnotes: `[^1]` in a text, and `[^1]: …` as a block of its own anywhere. Blocks render separately, so the labels
 * are kept as they are.
 */

import type { MarkedExtension, Tokens } from 'marked';

import { escapeHtml } from './highlight';

const LABEL = String.raw`\[\^([^\s\[\]^]{1,40})\]`;
const REFERENCE = new RegExp(`^${LABEL}(?!:)`);
/** A definition ends with its paragraph. */
const DEFINITION = new RegExp(`^${LABEL}:[ \\t]*([^\\n]*(?:\\n(?!\\s*\\n)(?!\\[\\^)[^\\n]*)*)(?:\\n|$)`);

export const footnotes: MarkedExtension = {
  extensions: [
    {
      name: 'footnote',
      level: 'inline',
      start: (text) => text.indexOf('[^'),
      tokenizer(text) {
        const found = REFERENCE.exec(text);
        return found ? { type: 'footnote', raw: found[0], label: found[1] } : undefined;
      },
      renderer: ({ label }) => `<sup>[${escapeHtml(String(label))}]</sup>`,
    },
    {
      name: 'footnoteText',
      level: 'block',
      tokenizer(text) {
        const found = DEFINITION.exec(text);
        if (!found) return undefined;
        const token: Tokens.Generic = { type: 'footnoteText', raw: found[0], label: found[1], tokens: [] };
        this.lexer.inline(found[2] ?? '', token.tokens);
        return token;
      },
      renderer({ label, tokens }) {
        return `<p><small><sup>[${escapeHtml(String(label))}]</sup> ${this.parser.parseInline(tokens ?? [])}</small></p>\n`;
      },
    },
  ],
};
