/**
 * Markdown that grows. A text is a list of blocks; while it streams, only the end is lexed again and only a changed
 * block is rendered again, for a later block never changes an earlier one (a late link definition does, so the finished
 * text is read once more). A text that is long when it is finished is read in a worker, see `markdownJobs.ts`.
 */

import {
  draft,
  lex,
  loadResource as load,
  MOST_BLOCKS,
  slotPattern,
  useNonce,
  visible,
  type BlockToken,
  type CodeDraft,
  type Draft,
  type Links,
  type Place,
  type Reading,
  type Resource,
} from './markdownDraft';
import { sanitizeAnswer, sanitizeOurs } from './sanitize';

/** A block with sanitized HTML; the pieces of long code are sanitized when they are drawn. */
export type Block = HtmlBlock | CodeDraft | (Place & { kind: 'plain'; html: null });
export type HtmlBlock = Place & { kind: 'html'; html: string; rows: number };

/** The maximum size of a step for a text that arrived at once, in characters and in blocks. */
export const STEP = 8192;
export const STEP_BLOCKS = 200;

/** A longer text is read in a worker when it is finished; longer code has no colors before. */
export const LONG_TEXT = 4000;

/** Carried by the slots of this page's drafts. */
export const NONCE = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('');
const SLOT = slotPattern(NONCE);
useNonce(NONCE);

/** Loads a resource once, with its style sheets. */
export async function loadResource(resource: Resource): Promise<void> {
  await Promise.all([load(resource), resource.kind === 'math' && loadMathStyle()]);
}

async function loadMathStyle(): Promise<void> {
  await import('katex/dist/katex.min.css');
}

/** A text as it is written: for now if it is open, for good if it is not. */
export function plainBlock(source: string, open: boolean, head: string | null = null): Block {
  return { kind: 'plain', source, open, missing: [], head, html: null };
}

/** A text whose lines end as Markdown's do. */
export function withNewlines(text: string): string {
  return text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
}

const finished = new WeakMap<Draft, Block>();

/** A draft with its HTML sanitized and its slots filled; the same object every time. */
export function blockOf(draft: Draft): Block {
  let block = finished.get(draft);
  if (!block) finished.set(draft, (block = finish(draft)));
  return block;
}

function finish(draft: Draft): Block {
  const { source, open, missing, head } = draft;
  if (draft.kind === 'plain') return plainBlock(source, open, head);
  if (draft.kind === 'code') return { ...draft, html: draft.html === null ? null : sanitizeOurs(draft.html) };
  if (draft.math) void loadMathStyle();
  const html = sanitizeAnswer(draft.html).replace(SLOT, (_, index: string) => {
    const slot = draft.slots[Number(index)];
    return slot ? slot.before + (slot.html && sanitizeOurs(slot.html)) + slot.after : '';
  });
  return { kind: 'html', source, open, missing, head, html, rows: draft.rows };
}

/** True if two blocks of the same text look the same. */
function equal(one: Block, other: Block): boolean {
  const pieces = (block: Block): number => (block.kind === 'code' ? block.pieces.length : 0);
  return one.kind === other.kind && one.html === other.html && pieces(one) === pieces(other);
}

/** The text of a growing answer as blocks. */
export class MarkdownText {
  #settled: Block[] = [];
  #settledSource = '';
  #links: Links = {};
  /** The head of the table in whose middle the settled blocks end. */
  #head: string | null = null;
  /** The blocks after the settled ones, as they were last rendered. */
  #open: Block[] = [];
  /** The text of which all blocks are shown, if it was read as a whole. */
  #whole: string | null = null;
  #behind = false;

  /** True if the text exceeds one step: the next update reads on. */
  get behind(): boolean {
    return this.#behind;
  }

  /**
   * The blocks of this text. Blocks that did not change are the same objects as before. Without `rich`, code has no
   * colors and formulas are not typeset, whatever is loaded.
   */
  update(text: string, whole: boolean, rich = true): Block[] {
    const source = withNewlines(text);
    if (whole) {
      if (source === this.#whole) return this.#all();
      const { tokens, links } = lex(source, {});
      this.replace(tokens.filter(visible).map((token) => draft(token, false, LONG_TEXT, rich)));
      [this.#links, this.#whole] = [links, source];
      return this.#all();
    }
    this.#whole = null;
    if (!source.startsWith(this.#settledSource)) this.#reset();

    const unsettled = source.slice(this.#settledSource.length);
    if (this.#settled.length >= MOST_BLOCKS) {
      this.#behind = false;
      this.#open = [plainBlock(unsettled, true)];
      return this.#all();
    }
    const { tokens: read, links, taken } = lex(unsettled, { links: this.#links, head: this.#head, most: STEP });
    this.#links = links;
    this.#behind = taken < unsettled.length || read.length > STEP_BLOCKS;
    const tokens = read.slice(0, STEP_BLOCKS);
    const shown = tokens.filter(visible);
    const last = shown.at(-1);
    // An incomplete first line may still turn out to continue the block before: "2" after a list, then "2.".
    const open = this.#behind ? [] : shown.slice(last && !last.raw.includes('\n') ? -2 : -1);
    const before = this.#settledSource.length;
    const settled = this.#behind ? tokens.length : open[0] ? tokens.indexOf(open[0]) : 0;
    for (const token of tokens.slice(0, settled)) {
      this.#settledSource += token.raw;
      this.#head = token.next ?? null;
      if (visible(token)) this.#settled.push(this.#rendered(token, false));
    }
    this.#open = this.#behind
      ? [plainBlock(unsettled.slice(this.#settledSource.length - before).slice(0, STEP), true)]
      : open.map((token) => this.#rendered(token, token === last));
    return this.#all();
  }

  /** Shows the drafts of the whole text. */
  replace(drafts: readonly Draft[]): Block[] {
    const before = new Map(this.#all().map((block) => [block.source, block]));
    this.#reset();
    this.#open = drafts.map((draft) => {
      const block = blockOf(draft);
      const old = before.get(block.source);
      return old && equal(old, block) ? old : block;
    });
    return this.#all();
  }

  /** The context in which one of its blocks is read. */
  reading({ head }: Block): Reading {
    return { links: this.#links, head };
  }

  /** Renders the blocks again whose missing resources have been loaded. */
  refresh(): Block[] {
    return this.complete((block) => {
      const token = lex(block.source, this.reading(block)).tokens.find(visible);
      return token && draft(token, false, LONG_TEXT);
    });
  }

  /** Replaces blocks that lack something by what `complete` knows of them. */
  complete(complete: (block: Block) => Draft | undefined): Block[] {
    const whole = (block: Block): Block => {
      const known = block.missing.length > 0 ? complete(block) : undefined;
      return known ? blockOf(known) : block;
    };
    this.#settled = this.#settled.map(whole);
    this.#open = this.#open.map(whole);
    return this.#all();
  }

  #all(): Block[] {
    return [...this.#settled, ...this.#open];
  }

  #rendered(token: BlockToken, open: boolean): Block {
    return (
      this.#open.find((block) => block.source === token.raw && block.open === open) ??
      blockOf(draft(token, open, LONG_TEXT))
    );
  }

  #reset(): void {
    this.#settled = [];
    this.#settledSource = '';
    this.#links = {};
    this.#head = null;
    this.#open = [];
    this.#whole = null;
    this.#behind = false;
  }
}
