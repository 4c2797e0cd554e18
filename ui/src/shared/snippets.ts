/** Snippets: texts that are put into a question by their names, `/name`. */

import type { Snippet } from '../bindings/Snippet';

/** The completion: the place of its slash, and the matching snippets. */
export interface Completion {
  readonly from: number;
  readonly matches: readonly Snippet[];
}

/** As many as can be looked over. */
const SHOWN = 8;

/** A name is one word, so that it ends with a space. */
const NAME = /^[\p{L}\p{N}_-]{1,40}$/u;

/** True if this can be the name of a snippet. */
export function isName(name: string): boolean {
  return NAME.test(name);
}

/** The snippets that the word before the caret means; `null` if it is no name of one. */
export function completionAt(text: string, caret: number, snippets: readonly Snippet[]): Completion | null {
  if (snippets.length === 0) return null;
  // Names are short, so only the end of a long text matters.
  const start = Math.max(0, caret - 60);
  const found = /(?:^|\s)\/([\p{L}\p{N}_-]*)$/u.exec(text.slice(start, caret));
  if (!found || (start > 0 && found.index === 0 && !/^\s/.test(found[0]))) return null;
  const typed = (found[1] ?? '').toLowerCase();
  const begins = snippets.filter(({ name }) => name.toLowerCase().startsWith(typed));
  const holds = snippets.filter(
    (snippet) => typed !== '' && !begins.includes(snippet) && snippet.name.toLowerCase().includes(typed),
  );
  const matches = [...begins, ...holds].slice(0, SHOWN);
  return matches.length === 0 ? null : { from: caret - typed.length - 1, matches };
}

/** The text with a snippet in place of its name, and the new place of the caret. */
export function insertSnippet(
  text: string,
  { from }: Completion,
  caret: number,
  snippet: Snippet,
): { text: string; caret: number } {
  return { text: text.slice(0, from) + snippet.text + text.slice(caret), caret: from + snippet.text.length };
}
