/**
 * Markdown as drafts of blocks: parsed and rendered, not yet sanitized. It needs no page, so it runs in a worker as
 * well.
 *
 * Rich pieces of our own (formulas, code inside lists, checkboxes) are empty slots while the model's HTML is sanitized,
 * and are inserted afterwards. A slot carries a random number that no answer can guess.
 */

import { Lexer, Marked, Renderer, Tokenizer, type Token, type Tokens } from 'marked';

import { t } from '../locales';
import { escapeHtml, grammarOf, highlight, loadGrammar } from './highlight';
import { citationExtension } from './citationMarks';
import { footnotes } from './footnotes';
import { loadTypesetter, mathExtension, mathHtml } from './math';
import { sectionsOf, type Section } from './sections';
import { isDrawn } from './tags';

/** Something that is read from the app's files when it is first used: the typesetter of formulas, or a grammar. */
export type Resource = { kind: 'math' } | { kind: 'grammar'; name: string };

/** HTML of our own for a slot; the part between its two ends contains a model's text. */
export interface Slot {
  before: string;
  html: string;
  after: string;
}

/** A block of a text before it is drawn. */
export interface Place {
  source: string;
  /** True if it may still grow. */
  open: boolean;
  /** The resources without which it renders incompletely. */
  missing: Resource[];
  /** The head of the table whose rows it continues; `null` for all else. */
  head: string | null;
}

/** Code, colored if `html` is not `null`; if it is long, its pieces are, of some lines each. */
export interface CodeDraft extends Place {
  kind: 'code';
  label: string;
  code: string;
  html: string | null;
  pieces: readonly CodeDraft[];
}

/** A block before its HTML is sanitized; `rows` is the number of rows if it is a table. */
export type Draft =
  | CodeDraft
  | (Place & { kind: 'html'; html: string; slots: Slot[]; math: boolean; rows: number })
  | (Place & { kind: 'plain' });

/** Loads a resource, once. */
export function loadResource(resource: Resource): Promise<void> {
  return resource.kind === 'math' ? loadTypesetter() : loadGrammar(resource.name);
}

/** The definitions of links that a text has so far. */
export type Links = Lexer['tokens']['links'];
/**
 * A block of a text, or a part of it that stays plain; with the head of the table whose rows it continues, and that of
 * the table whose rows follow.
 */
export type BlockToken = (Token | { type: 'plain'; raw: string }) & { head?: string; next?: string };

/** The context in which a text is read. */
export interface Reading {
  /** The definitions of links before it. */
  links?: Links;
  /** The head of the table in whose middle it begins. */
  head?: string | null;
  /** True if all of it is formatted, however much that costs. */
  anyway?: boolean;
}

/** The maximum number of definitions, because each run of text is compared with them. */
const MOST_LINKS = 200;

/** The placeholder of a slot during sanitizing: `<span data-slot="NONCE-NUMBER"></span>`. */
export function slotPattern(nonce: string): RegExp {
  return new RegExp(`<span data-slot="${nonce}-(\\d+)"></span>`, 'g');
}

/** Unknown to every answer; the page creates it and passes it to workers. */
let nonce = '';
/** The slots of the block that is being rendered. */
let slots: Slot[] = [];
let missing: Resource[] = [];
let formulas = 0;
let longestCode = Infinity;
let rich = true;

/** Lets slots carry this number. */
export function useNonce(text: string): void {
  nonce = text;
}

function slot(before: string, html = '', after = ''): string {
  slots.push({ before, html, after });
  return `<span data-slot="${nonce}-${slots.length - 1}"></span>`;
}

const marked = new Marked(
  {
    gfm: true,
    breaks: true,
    tokenizer: {
      // Two tildes strike out; one belongs to its text, as in H~2~O.
      del: (source) => (/^~(?!~)/.test(source) ? undefined : false),
      // Text after a tag is text, whatever the tag: some of them are only shown.
      tag(source) {
        const token = Tokenizer.prototype.tag.call(this, source);
        this.lexer.state.inRawBlock = false;
        return token;
      },
    },
    renderer: {
      html({ text, block }) {
        if (isDrawn(text, !block)) return text;
        return block ? slot(`<p class="raw">${escapeHtml(text.trim())}</p>`) : escapeHtml(text);
      },
      // Nothing is loaded from an answer, so an image is shown as the link it is.
      image({ href, text }) {
        const mark = slot(`<span class="image" role="img" aria-label="${escapeHtml(t('answer.image'))}"></span>`);
        const host = /^https?:/i.test(href) && URL.canParse(href) ? new URL(href).host : '';
        const label = text && host ? t('answer.imageAt', { name: text, host }) : text || href;
        return `<a href="${escapeHtml(href)}">${mark}${escapeHtml(label)}</a>`;
      },
      code({ text, lang }) {
        const label = labelOf(lang);
        const html = colours(text, label) ?? escapeHtml(text);
        return codeBox(label, html);
      },
      checkbox({ checked }) {
        return slot(
          `<span class="tick" role="img" aria-label="${escapeHtml(t(checked ? 'answer.taskDone' : 'answer.taskOpen'))}" data-done="${checked}"></span>`,
        );
      },
      table(token) {
        // The figure scrolls sideways if the table is wider than the column.
        return `<figure>${Renderer.prototype.table.call(this, token)}</figure>`;
      },
    },
  },
  footnotes,
  citationExtension((html) => slot(html)),
  mathExtension((tex, display) => {
    const html = rich ? mathHtml(tex, display) : null;
    if (html === null) missing.push({ kind: 'math' });
    formulas += 1;
    return html === null ? slot(`<span class="tex">${escapeHtml(tex)}</span>`) : slot('', html);
  }),
);

/** The most blocks of a text that are drawn as Markdown; the rest is drawn as it is written. */
export const MOST_BLOCKS = 2000;

/**
 * The blocks of a text, with the definitions of links known so far. Sections are taken until `most` characters are;
 * `taken` says how many were.
 */
export function lex(
  source: string,
  { links = {}, head = null, anyway = false, most = Infinity }: Reading & { most?: number },
): { tokens: BlockToken[]; links: Links; taken: number } {
  const lexer = new Lexer(marked.defaults);
  const known = Object.assign(lexer.tokens.links, links);
  const tokens: BlockToken[] = [];
  let taken = 0;
  for (const section of sectionsOf(source, head)) {
    if (taken > 0 && taken + section.source.length > most) break;
    if (tokens.length >= 2 * MOST_BLOCKS) {
      tokens.push({ type: 'plain', raw: source.slice(taken) });
      taken = source.length;
      break;
    }
    taken += section.source.length;
    tokens.push(...blocksOf(lexer, section, anyway));
    if (section.source.includes(']:')) for (const label of Object.keys(known).slice(MOST_LINKS)) delete known[label];
  }
  for (const { src, tokens: words } of lexer.inlineQueue) {
    lexer.state.inRawBlock = false;
    try {
      lexer.inlineTokens(src, words);
    } catch {
      words.splice(0, words.length, { type: 'text', raw: src, text: src });
    }
  }
  return { tokens, links: known, taken };
}

/** The blocks of a section; rows of a table that began before it are a table without that head. */
function blocksOf(lexer: Lexer, { source, plain, head, next }: Section, anyway: boolean): BlockToken[] {
  const read: BlockToken[] | null = plain && !anyway ? null : blocks(lexer, (head ?? '') + source);
  const tokens: BlockToken[] = read ?? [{ type: 'plain', raw: source }];
  const [first] = tokens;
  if (head !== null && read && first) {
    if (first.type !== 'table') return blocksOf(lexer, { source, plain, head: null, next }, anyway);
    tokens[0] = { ...first, raw: first.raw.slice(head.length), head };
  }
  const last = tokens.at(-1);
  if (next !== null && last) tokens[tokens.length - 1] = { ...last, next };
  return tokens;
}

/** The blocks of a section; `null` if the lexer gives up. */
function blocks(lexer: Lexer, source: string): Token[] | null {
  const queued = lexer.inlineQueue.length;
  try {
    return lexer.blockTokens(source, []);
  } catch {
    lexer.inlineQueue.length = queued;
    return null;
  }
}

/** True if a block is drawn. */
export function visible(token: BlockToken): boolean {
  return token.type !== 'space' && token.type !== 'def';
}

/** True for a block of code. */
export function isCode(token: BlockToken): token is Tokens.Code {
  return token.type === 'code';
}

function isPlain(token: BlockToken): token is { type: 'plain'; raw: string } {
  return token.type === 'plain';
}

/**
 * Renders one block; an open one may end in the middle of a word, a mark or a fence. Longer code than `code` stays
 * without colors; without `richly` all of it does, and formulas are not typeset.
 */
export function draft(token: BlockToken, open: boolean, code: number, richly = true): Draft {
  [longestCode, rich] = [code, richly];
  slots = [];
  missing = [];
  formulas = 0;
  const { raw: source, head = null } = token;
  if (isPlain(token)) return { kind: 'plain', source, open, missing, head };
  if (isCode(token)) {
    const label = labelOf(token.lang);
    // Colors come when the block is closed, for a half line colors wrongly.
    const html = open && !closed(token) ? null : colours(token.text, label);
    return coded({ source, open, missing, head }, label, token.text, html);
  }
  const html = parsed(open ? completed(token) : [token]);
  return html === null
    ? { kind: 'plain', source, open, missing: [], head }
    : { kind: 'html', source, open, html, slots, missing, head, math: formulas > 0, rows: rowsOf(token) };
}

/** The number of rows of a table; 0 for anything else. */
function rowsOf(token: Token): number {
  return token.type === 'table' && Array.isArray(token['rows']) ? token['rows'].length : 0;
}

/** The length of a piece of code, in characters. */
const CODE_PIECE = 2000;

/** Code with its colors, in pieces if it is long. A color ends with its line. */
function coded(place: Place, label: string, code: string, html: string | null): CodeDraft {
  if (html === null || code.length <= CODE_PIECE) return { ...place, kind: 'code', label, code, html, pieces: [] };
  const pieces: CodeDraft[] = [];
  const [lines, colored] = [code.split('\n'), html.split('\n')];
  for (let from = 0; from < lines.length;) {
    let to = from;
    for (let length = 0; to < lines.length && (to === from || length < CODE_PIECE); to++)
      length += (lines[to] ?? '').length + 1;
    const [text, colors] = [lines, colored].map((all) => all.slice(from, to).join('\n'));
    const own = { source: '', open: false, missing: [], head: null };
    pieces.push({ ...own, kind: 'code', label, code: text ?? '', html: colors ?? '', pieces: [] });
    from = to;
  }
  return { ...place, kind: 'code', label, code, html: null, pieces };
}

/** `null` if the parser gives up, as it does when it runs out of stack. */
function parsed(tokens: Token[]): string | null {
  try {
    return marked.parser(tokens);
  } catch {
    return null;
  }
}

/**
 * All blocks of a finished text, with their resources; blocks stay plain if one cannot be loaded, and after {@link
 * MOST_BLOCKS}. It takes a `turn` before it draws, and another once the resources are loaded.
 */
export async function draftWhole(text: string, reading: Reading = {}, turn = async () => {}): Promise<Draft[]> {
  await turn();
  const all = lex(text, reading).tokens.filter(visible);
  const rest = all
    .slice(MOST_BLOCKS)
    .map((token) => token.raw)
    .join('\n\n');
  const tokens: BlockToken[] = rest === '' ? all : [...all.slice(0, MOST_BLOCKS), { type: 'plain', raw: rest }];
  const drafts = tokens.map((token) => draft(token, false, Infinity));
  const wanted = new Map(
    drafts
      .flatMap((block) => block.missing)
      .map((resource) => [resource.kind === 'math' ? '' : resource.name, resource]),
  );
  if (wanted.size === 0) return drafts;
  await Promise.allSettled([...wanted.values()].map(loadResource));
  await turn();
  return drafts.map((block, index) => {
    const token = tokens[index];
    return block.missing.length > 0 && token ? { ...draft(token, false, Infinity), missing: [] } : block;
  });
}

function colours(code: string, label: string): string | null {
  if (code.length > longestCode) return null;
  const grammar = grammarOf(label);
  const html = rich ? highlight(code, label) : null;
  if (html === null && grammar !== null) missing.push({ kind: 'grammar', name: grammar });
  return html;
}

/** The label of a block of code: the first word after its fence. */
export function labelOf(lang: string | undefined): string {
  return /^[^\s{,]*/.exec(lang ?? '')?.[0] ?? '';
}

function closed(token: Tokens.Code): boolean {
  const text = token.raw.trimEnd();
  return (
    token.codeBlockStyle === 'indented' ||
    /^ {0,3}(?:`{3,}|~{3,})$/.test(text.slice(text.lastIndexOf('\n') + 1) + (text.includes('\n') ? '' : '-'))
  );
}

/** The frame of a code block inside a list or a quotation; `CodeBlock.svelte` draws the same at the top level. */
function codeBox(label: string, html: string): string {
  const bar = `<div class="code-bar"><span>${escapeHtml(label || t('answer.codeLabel'))}</span><button type="button" data-copy>${escapeHtml(t('common.copy'))}</button></div>`;
  return slot(`<div class="code" dir="ltr">${bar}<pre tabindex="0"><code>`, html, '</code></pre></div>');
}

/**
 * An open block with the marks closed that its text has opened, so that they do not show while their end is awaited.
 */
function completed(token: Token & { head?: string }): Token[] {
  const source = completeMarks(token.raw);
  const tokens = source === token.raw ? [] : lex(source, { head: token.head ?? null }).tokens;
  return tokens.length === 0 || tokens.some(isPlain)
    ? [token]
    : tokens.filter((inner): inner is Token => !isPlain(inner));
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
