/** Code of an answer that can be shown as what it makes: pages, drawings and diagrams. */

import { isDiagram } from './diagram';
import { withNewlines } from './markdown';
import { isCode, labelOf, lex } from './markdownDraft';
import { sectionsOf } from './sections';

/** A page with scripts, a drawing, a diagram of mermaid. */
export type ArtifactKind = 'html' | 'svg' | 'mermaid';

/** A block of code with something to show. */
export interface Artifact {
  readonly kind: ArtifactKind;
  readonly code: string;
  /** The title that the code gives itself; empty if it has none. */
  readonly title: string;
  /** The same for all versions of one thing. */
  readonly name: string;
}

/** More characters are not shown; the host has a limit as well. */
const LONGEST = 1_000_000;
/** The beginning of code in which its title is looked for, in characters. */
const HEAD = 20_000;
/** The longest title, in characters. */
const LONGEST_TITLE = 200;

const PAGE_LABELS: readonly string[] = ['html', 'htm', 'xhtml'];
/** Labels of blocks that say nothing about what they hold. */
const OTHER_LABELS: readonly string[] = ['', 'text', 'txt', 'plaintext', 'xml', 'markup'];
const WHOLE_PAGE = /^\s{0,100}<!doctype html\b/i;
const DRAWING = /^\s{0,100}(?:<\?xml[^>]{0,200}\?>\s{0,100})?(?:<!--[^>]{0,400}-->\s{0,100})?<svg[\s>]/i;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** The kind of thing that a code block with this label makes; `null` if it makes nothing that could be shown. */
export function artifactKind(label: string, code: string): ArtifactKind | null {
  if (code.length > LONGEST || code.trim() === '') return null;
  const named = label.toLowerCase();
  if (isDiagram(named)) return 'mermaid';
  if (named === 'svg') return 'svg';
  if (PAGE_LABELS.includes(named)) return 'html';
  if (!OTHER_LABELS.includes(named)) return null;
  if (WHOLE_PAGE.test(code)) return 'html';
  return DRAWING.test(code) ? 'svg' : null;
}

/** True if the fence of a code block has come to its end. */
export function isClosed(source: string): boolean {
  const text = source.trimEnd();
  const opening = FENCE.exec(text)?.[1];
  const end = text.lastIndexOf('\n');
  const closing = end < 0 ? undefined : /^ {0,3}(`{3,}|~{3,})$/.exec(text.slice(end + 1))?.[1];
  return (
    opening === undefined || (closing !== undefined && closing[0] === opening[0] && closing.length >= opening.length)
  );
}

/** The artifacts of an answer in their order, without one that is still being written. */
export function artifactsIn(answer: string, growing: boolean): Artifact[] {
  if (!/`{3}|~{3}/.test(answer)) return [];
  const found: Artifact[] = [];
  const untitled = { html: 0, svg: 0, mermaid: 0 };
  for (const { source } of sectionsOf(withNewlines(answer))) {
    if (!FENCE.test(source) || (growing && !isClosed(source))) continue;
    for (const { lang, text: code } of lex(source, {}).tokens.filter(isCode)) {
      const kind = artifactKind(labelOf(lang), code);
      if (kind === null) continue;
      const title = titleOf(kind, code);
      // Without a title it is the version of what stood in its place in another answer.
      const name = title || `#${(untitled[kind] += 1)}`;
      found.push({ kind, code, title, name });
    }
  }
  return found;
}

/** A block that no answer of the chat has, or has no longer. */
export function artifactOf(kind: ArtifactKind, code: string): Artifact {
  const title = titleOf(kind, code);
  return { kind, code, title, name: title };
}

function titleOf(kind: ArtifactKind, code: string): string {
  const head = code.slice(0, HEAD);
  const written =
    kind === 'mermaid'
      ? /^[ \t]{0,20}(?:pie[ \t]+)?(?:accTitle:|title:?)[ \t]+(.{1,400})$/m.exec(head)?.[1]
      : /<title\b[^>]{0,200}>([^<]{1,400})/i.exec(head)?.[1];
  if (written === undefined) return '';
  const words = kind === 'mermaid' ? written : unescaped(written);
  return words.replace(/\s+/g, ' ').trim().slice(0, LONGEST_TITLE);
}

/** The text of HTML without tags. */
function unescaped(html: string): string {
  return new DOMParser().parseFromString(html, 'text/html').documentElement.textContent;
}
