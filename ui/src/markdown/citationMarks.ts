/**
 * Marks such as `[1]`, `[1, 3]` and `[2-4]`, by which an answer cites passages. Every text keeps them as spans that
 * look like its other words; those that cite become buttons where they are drawn, so that no text is parsed again once
 * its passages are known.
 */

import type { MarkedExtension } from 'marked';

import { escapeHtml } from './highlight';

/** The most passages of one mark; a longer list is no mark. */
const MOST = 32;
const NUMBERS = String.raw`\s*\d{1,4}\s*(?:[,;–-]\s*\d{1,4}\s*)*`;
const MARK = new RegExp(String.raw`^\[(${NUMBERS})\](?!\()`);
const ANY_MARK = new RegExp(String.raw`\[(${NUMBERS})\](?!\()`, 'g');
const CODE = /(`+)[^]*?(?:\1|$)/g;

/** The numbers of a part of a list, `3` or `2-4`; `null` if it is anything else. */
function numbersOf(part: string): number[] | null {
  const ends = part.split(/[–-]/).map((end) => Number(end.trim()));
  const [first = 0, last = first] = ends;
  if (ends.length > 2 || first > last || last - first >= MOST) return null;
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** The parts of a list with their numbers; `null` if it is no mark. */
function partsOf(list: string): number[][] | null {
  const parts: number[][] = [];
  for (const part of list.split(/[,;]/)) {
    const numbers = numbersOf(part);
    if (numbers === null) return null;
    parts.push(numbers);
  }
  return parts.flat().length > MOST ? null : parts;
}

/** The numbers that a text cites outside of code, each once, in their order. */
export function citedNumbers(text: string): number[] {
  const lists = [...text.replace(CODE, '').matchAll(ANY_MARK)].map(([, list = '']) => partsOf(list) ?? []);
  return [...new Set(lists.flat(2))];
}

/** Keeps marks apart from the words around them; `slot` stands for HTML of ours in a text. */
export function citationExtension(slot: (html: string) => string): MarkedExtension {
  return {
    extensions: [
      {
        name: 'citation',
        level: 'inline',
        tokenizer(text) {
          const [raw, list = ''] = MARK.exec(text) ?? [];
          // The words of a link stay words, and so does what a definition makes a link.
          if (raw === undefined || this.lexer.state.inLink || list.trim() in this.lexer.tokens.links) return undefined;
          const parts = partsOf(list);
          return parts === null ? undefined : { type: 'citation', raw, list, parts };
        },
        renderer: ({ list, parts }) => slot(spans(String(list), Array.isArray(parts) ? parts : [])),
      },
    ],
  };
}

/** A mark as spans, one for each part of its list, with the same letters. */
function spans(list: string, parts: readonly (readonly number[])[]): string {
  const words = list.split(/([,;]\s*)/);
  return words
    .map((part, at) => {
      if (at % 2 === 1) return escapeHtml(part);
      const text = `${at === 0 ? '[' : ''}${part}${at === words.length - 1 ? ']' : ''}`;
      return `<span data-cite="${parts[at / 2]?.join(' ') ?? ''}">${escapeHtml(text)}</span>`;
    })
    .join('');
}

/** The look of a mark that is a button. */
export interface MarkLook {
  /** Its words for a screen reader. */
  readonly label: string;
  /** True if something is wrong with it. */
  readonly wrong: boolean;
}

/** The passages behind the marks of an answer. */
export interface Citations {
  /** The look of each mark of a text, by their numbers in their order; `null` leaves a mark as it is written. */
  looks(text: string, marks: readonly (readonly number[])[]): (MarkLook | null)[];
  /** Shows where the passages of a mark are from, at the mark. */
  point(mark: HTMLElement, numbers: readonly number[], label: string): void;
  /** Takes that away. */
  leave(): void;
  /** Opens the passages of a mark. */
  open(numbers: readonly number[]): void;
}

const numbersAt = (mark: HTMLElement): number[] => (mark.dataset['cite'] ?? '').split(' ').map(Number);

function decorate(root: HTMLElement, text: string, citations: Citations): void {
  const marks = [...root.querySelectorAll<HTMLElement>('[data-cite]')];
  const looks = marks.length === 0 ? [] : citations.looks(text, marks.map(numbersAt));
  for (const [at, mark] of marks.entries()) {
    const look = looks[at];
    if (!look) {
      for (const name of ['role', 'tabindex', 'aria-label', 'data-wrong']) mark.removeAttribute(name);
      continue;
    }
    mark.setAttribute('role', 'button');
    mark.tabIndex = 0;
    if (mark.getAttribute('aria-label') !== look.label) mark.setAttribute('aria-label', look.label);
    mark.toggleAttribute('data-wrong', look.wrong);
  }
}

/** Makes buttons of the marks below an element, also of those drawn later. `text` is the text that it draws. */
export function citing(citations: Citations, text: () => string): (root: HTMLElement) => () => void {
  return (root) => {
    const again = (): void => decorate(root, text(), citations);
    const markOf = ({ target }: Event): HTMLElement | null =>
      target instanceof Element ? target.closest<HTMLElement>('[data-cite][role="button"]') : null;
    const point = (event: Event): void => {
      const mark = markOf(event);
      if (mark) citations.point(mark, numbersAt(mark), mark.getAttribute('aria-label') ?? '');
    };
    const leave = (event: Event): void => void (markOf(event) && citations.leave());
    const open = (event: Event): void => {
      const mark = markOf(event);
      if (!mark) return;
      event.preventDefault();
      citations.leave();
      citations.open(numbersAt(mark));
    };
    const press = (event: KeyboardEvent): void => {
      if (event.key === 'Enter' || event.key === ' ') open(event);
    };
    const listeners = new AbortController();
    const { signal } = listeners;
    root.addEventListener('pointerover', point, { signal });
    root.addEventListener('pointerout', leave, { signal });
    root.addEventListener('focusin', point, { signal });
    root.addEventListener('focusout', leave, { signal });
    root.addEventListener('click', open, { signal });
    root.addEventListener('keydown', press, { signal });
    const drawn = new MutationObserver(again);
    drawn.observe(root, { childList: true, subtree: true });
    again();
    return () => {
      listeners.abort();
      drawn.disconnect();
    };
  };
}
