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
  type Draft,
  type Links,
  type Resource,
} from './markdownDraft';
import { sanitizeAnswer, sanitizeOurs } from './sanitize';

export type { Resource } from './markdownDraft';

/**
 * A block at the top level of a text. An open one may still grow; `missing` lists the resources without which it
 * renders incompletely.
 */
export type Block = { source: string; open: boolean; missing: Resource[] } & (
  | { kind: 'html'; html: string }
  | { kind: 'code'; label: string; code: string; html: string | null }
  | { kind: 'plain'; html: null }
);

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

/** A text as it is written. */
export function plainBlock(source: string, open = false): Block {
  return { kind: 'plain', source, open, missing: [], html: null };
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
  const { source, open, missing } = draft;
  if (draft.kind === 'plain') return plainBlock(source, open);
  if (draft.kind === 'code') {
    const { label, code, html } = draft;
    return { kind: 'code', source, open, missing, label, code, html: html === null ? null : sanitizeOurs(html) };
  }
  if (draft.math) void loadMathStyle();
  const html = sanitizeAnswer(draft.html).replace(SLOT, (_, index: string) => {
    const slot = draft.slots[Number(index)];
    return slot ? slot.before + (slot.html && sanitizeOurs(slot.html)) + slot.after : '';
  });
  return { kind: 'html', source, open, missing, html };
}

/** The text of a growing answer as blocks. */
export class MarkdownText {
  #settled: Block[] = [];
  #settledSource = '';
  #links: Links = {};
  /** The blocks after the settled ones, as they were last rendered. */
  #open: Block[] = [];
  #behind = false;

  /** True if the text exceeds one step: the next update reads on. */
  get behind(): boolean {
    return this.#behind;
  }

  /** The blocks of this text. Blocks that did not change are the same objects as before. */
  update(text: string, whole: boolean): Block[] {
    const source = withNewlines(text);
    if (whole)
      return this.replace(
        lex(source, {})
          .tokens.filter(visible)
          .map((token) => draft(token, false, LONG_TEXT)),
      );
    if (!source.startsWith(this.#settledSource)) this.#reset();

    const unsettled = source.slice(this.#settledSource.length);
    if (this.#settled.length >= MOST_BLOCKS) {
      this.#behind = false;
      this.#open = [plainBlock(unsettled, true)];
      return this.#all();
    }
    const { tokens: read, links, taken } = lex(unsettled, this.#links, STEP);
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
      return old?.html === block.html && old.kind === block.kind ? old : block;
    });
    return this.#all();
  }

  /** Renders the blocks again whose missing resources have been loaded. */
  refresh(): Block[] {
    const rendered = (block: Block): Block => {
      const token = block.missing.length > 0 ? lex(block.source, this.#links).tokens.find(visible) : undefined;
      return token ? blockOf(draft(token, false, LONG_TEXT)) : block;
    };
    this.#settled = this.#settled.map(rendered);
    this.#open = this.#open.map(rendered);
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
    this.#open = [];
    this.#behind = false;
  }
}
