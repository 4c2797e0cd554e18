/** The sanitizer of all HTML. */

import createDOMPurify, { type Config } from 'dompurify';

import { ANSWER_TAGS } from './tags';

const purify = createDOMPurify(window);

// Only what Markdown needs: no class, style or id with which an answer could dress up as a part of the window.
const ANSWER: Config = {
  ALLOWED_TAGS: ANSWER_TAGS,
  ALLOWED_ATTR: ['align', 'colspan', 'data-slot', 'dir', 'href', 'lang', 'open', 'rowspan', 'start'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // Without this every value, not only an address, would have to match the expression above.
  ADD_URI_SAFE_ATTR: ['align', 'colspan', 'data-slot', 'dir', 'lang', 'open', 'rowspan', 'start'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

// Made by the highlighter and by KaTeX, which need classes, KaTeX inline lengths as well.
const OURS: Config = {
  USE_PROFILES: { html: true, mathMl: true, svg: true },
  ADD_TAGS: ['semantics', 'annotation'],
  ADD_ATTR: ['encoding'],
  FORBID_TAGS: ['img', 'a', 'form', 'input', 'style', 'image', 'use'],
};

/** HTML that a model had a hand in. */
export function sanitizeAnswer(html: string): string {
  return purify.sanitize(html, ANSWER);
}

/** HTML that our own renderers created from a model's code or formula. */
export function sanitizeOurs(html: string): string {
  return purify.sanitize(html, OURS);
}

// Made by mermaid of a model's words, and shown as an image alone, in which nothing runs and nothing is loaded.
const DRAWING = {
  USE_PROFILES: { svg: true, svgFilters: true },
  FORBID_TAGS: [
    'a', 'animate', 'animatemotion', 'animatetransform', 'feimage', 'foreignobject', 'script', 'set', 'use',
  ],
  // No value begins like an address, but for the images of the library itself, which DOMPurify takes as data.
  ALLOWED_URI_REGEXP: /^(?!(?:[a-z][a-z0-9+.-]*:|[\\/]{2}))/i,
  RETURN_DOM: true,
} as const satisfies Config;

/** A drawing for an image; `null` if there is none. */
export function sanitizeDrawing(svg: string): SVGElement | null {
  const body = purify.sanitize(svg, DRAWING);
  return body instanceof Element ? body.querySelector('svg') : null;
}
