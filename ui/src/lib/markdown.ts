/**
 * Markdown that grows. A text is a list of blocks; while it streams, only the end is lexed again and only a changed
 * block is rendered again, for a later block never changes an earlier one (a late link definition does, so the finished
 * text is read once more).
 *
 * Rich pieces that we make ourselves (formulas, code inside lists, tick boxes) stand as empty slots while the model's HTML
 * is sanitised and are put in afterwards. A slot carries a random number that no answer can guess.
 */

import { Lexer, Marked, Renderer, type Token, type Tokens } from 'marked';

import { t } from '../messages';
import { escapeHtml, grammarOf, highlight, loadGrammar } from './highlight';
import { loadMath, mathExtension, mathHtml } from './math';
import { sanitizeAnswer, sanitizeOurs } from './sanitize';

/** A block at the top level of a text. An open one may still grow; `missing` lists what has to be loaded to render it fully. */
export type Block = { source: string; open: boolean; missing: Resource[] } & (
  | { kind: 'html'; html: string }
  | { kind: 'code'; label: string; code: string; html: string | null }
);

/** Something that is read from the app's files when it is first used: the typesetter of formulas, or a grammar. */
export type Resource = { kind: 'math' } | { kind: 'grammar'; name: string };

/** Loads a resource, once. */
export function loadResource(resource: Resource): Promise<void> {
  switch (resource.kind) {
    case 'math':
      return loadMath();
    case 'grammar':
      return loadGrammar(resource.name);
  }
}

/** The text of a growing answer as blocks. */
export class MarkdownText {
  #settled: Block[] = [];
  #settledSource = '';
  #links: Links = {};
  /** The blocks after the settled ones, as they were last rendered. */
  #open: Block[] = [];

  /** The blocks of this text. Blocks that did not change are the same objects as before. */
  update(text: string, finished: boolean): Block[] {
    const source = text.replace(/\r\n?/g, '\n');
    if (finished) {
      const before = this.#all();
      this.#reset();
      this.#open = lex(source, {}).tokens.filter(visible).map((token) => known(before, render(token)));
      return this.#all();
    }
    if (!source.startsWith(this.#settledSource)) this.#reset();

    const { tokens, links } = lex(source.slice(this.#settledSource.length), this.#links);
    this.#links = links;
    const shown = tokens.filter(visible);
    const last = shown.at(-1);
    // A first line that is not yet whole may still turn out to continue the block before: "2" after a list, then "2.".
    const open = shown.slice(last && !last.raw.includes('\n') ? -2 : -1);
    const settled = open[0] ? tokens.indexOf(open[0]) : 0;
    for (const token of tokens.slice(0, settled)) {
      this.#settledSource += token.raw;
      if (visible(token)) this.#settled.push(this.#rendered(token, false));
    }
    this.#open = open.map((token) => this.#rendered(token, token === last));
    return this.#all();
  }

  /** Renders the blocks again whose missing resources have been loaded. */
  refresh(): Block[] {
    const rendered = (block: Block): Block => {
      const token = block.missing.length > 0 ? lex(block.source, this.#links).tokens.find(visible) : undefined;
      return token ? render(token) : block;
    };
    this.#settled = this.#settled.map(rendered);
    this.#open = this.#open.map(rendered);
    return this.#all();
  }

  #all(): Block[] {
    return [...this.#settled, ...this.#open];
  }

  #rendered(token: Token, open: boolean): Block {
    return this.#open.find((block) => block.source === token.raw && block.open === open) ?? render(token, open);
  }

  #reset(): void {
    this.#settled = [];
    this.#settledSource = '';
    this.#links = {};
    this.#open = [];
  }
}

type Links = Lexer['tokens']['links'];

function known(before: readonly Block[], block: Block): Block {
  return before.find((old) => old.source === block.source && old.html === block.html) ?? block;
}

const nonce = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
const SLOT = new RegExp(`<span data-slot="${nonce}-(\\d+)"></span>`, 'g');
/** What the block that is being rendered has collected. */
let slots: string[] = [];
let missing: Resource[] = [];

function slot(html: string): string {
  slots.push(html);
  return `<span data-slot="${nonce}-${slots.length - 1}"></span>`;
}

const marked = new Marked(
  {
    gfm: true,
    breaks: true,
    renderer: {
      // Nothing is loaded from an answer, so a picture is shown as the link it is.
      image({ href, text }) {
        return `<a href="${escapeHtml(href)}" title="${escapeHtml(t('answer.picture'))}">${escapeHtml(text || href)}</a>`;
      },
      code({ text, lang }) {
        const label = labelOf(lang);
        const html = colours(text, label) ?? escapeHtml(text);
        return slot(codeBox(label, html));
      },
      checkbox({ checked }) {
        return slot(`<span class="tick" role="img" aria-label="${escapeHtml(t(checked ? 'answer.taskDone' : 'answer.taskOpen'))}" data-done="${checked}"></span>`);
      },
      table(token) {
        // The figure scrolls sideways if the table is wider than the column.
        return `<figure>${Renderer.prototype.table.call(this, token)}</figure>`;
      },
    },
  },
  mathExtension((tex, display) => {
    const html = mathHtml(tex, display);
    if (html === null) missing.push({ kind: 'math' });
    return slot(html === null ? `<span class="tex">${escapeHtml(tex)}</span>` : sanitizeOurs(html));
  }),
);

function lex(source: string, links: Links): { tokens: Token[]; links: Links } {
  const lexer = new Lexer(marked.defaults);
  Object.assign(lexer.tokens.links, links);
  const tokens = lexer.lex(source);
  return { tokens, links: lexer.tokens.links };
}

function visible(token: Token): boolean {
  return token.type !== 'space' && token.type !== 'def';
}

function isCode(token: Token): token is Tokens.Code {
  return token.type === 'code';
}

/** Renders one block; an open one may end in the middle of a word, a mark or a fence. */
function render(token: Token, open = false): Block {
  slots = [];
  missing = [];
  const source = token.raw;
  if (isCode(token)) {
    const label = labelOf(token.lang);
    // Colours come when the block is closed, for a half line colours wrongly.
    const html = open && !closed(token) ? null : colours(token.text, label);
    return { kind: 'code', source, open, label, code: token.text, html: html === null ? null : sanitizeOurs(html), missing };
  }
  const tokens = open ? completed(token) : [token];
  const html = sanitizeAnswer(marked.parser(tokens)).replace(SLOT, (_, index: string) => slots[Number(index)] ?? '');
  return { kind: 'html', source, open, html, missing };
}

function colours(code: string, label: string): string | null {
  const grammar = grammarOf(label);
  const html = highlight(code, label);
  if (html === null && grammar !== null) missing.push({ kind: 'grammar', name: grammar });
  return html;
}

function labelOf(lang: string | undefined): string {
  return /^[^\s{,]*/.exec(lang ?? '')?.[0] ?? '';
}

function closed(token: Tokens.Code): boolean {
  return token.codeBlockStyle === 'indented' || /\n {0,3}(?:`{3,}|~{3,})[ \t]*\n*$/.test(token.raw);
}

/** The frame of a code block inside a list or a quotation; `CodeBlock.svelte` draws the same at the top level. */
function codeBox(label: string, html: string): string {
  const bar = `<div class="code-bar"><span>${escapeHtml(label || t('answer.codeLabel'))}</span><button type="button" data-copy>${escapeHtml(t('common.copy'))}</button></div>`;
  return `<div class="code">${bar}<pre tabindex="0"><code>${sanitizeOurs(html)}</code></pre></div>`;
}

/** An open block with the marks closed that its text has opened, so that they do not show while their end is awaited. */
function completed(token: Token): Token[] {
  const source = completeMarks(token.raw);
  return source === token.raw ? [token] : lex(source, {}).tokens;
}

/** Closes a dangling `` ` ``, `**` or `~~` of a text's last line and drops a mark that nothing follows yet. */
export function completeMarks(source: string): string {
  const start = source.lastIndexOf('\n') + 1;
  const line = source.slice(start);
  let rest = line.trimEnd();
  // An odd backtick opens code, in which no other mark counts.
  if (rest.split('`').length % 2 === 0) {
    return source.slice(0, start) + (rest.endsWith('`') ? rest.slice(0, -1) : `${rest}\``);
  }
  const outside = () => rest.replace(/`[^`]*`/g, '');
  for (const mark of ['**', '~~']) {
    if (outside().split(mark).length % 2 === 1) continue;
    rest = rest.endsWith(mark) ? rest.slice(0, -2) : `${rest.replace(/[*~]$/, '')}${mark}`;
    return source.slice(0, start) + rest;
  }
  return source;
}
