/** Snippets: texts that are put into a question by their names, `/name`. */

/** The completion: the place of its slash, and what matches the name after it. */
export interface Completion<T> {
  readonly from: number;
  readonly matches: readonly T[];
}

/** As many as can be looked over. */
const SHOWN = 8;

/** A name is one word, so that it ends with a space. */
const NAME = /^[\p{L}\p{N}_-]{1,40}$/u;

/** True if this can be the name of a snippet. */
export function isName(name: string): boolean {
  return NAME.test(name);
}

/** True if a name begins before the caret: there is a slash and nothing after it. */
export function beginsName(text: string, caret: number): boolean {
  return /(?:^|\s)\/$/.test(text.slice(Math.max(0, caret - 2), caret));
}

/** The meaning of the word before the caret; `null` if it is no name of anything. One without a name follows a mere slash. */
export function completionAt<T extends { readonly name: string }>(
  text: string,
  caret: number,
  named: readonly T[],
): Completion<T> | null {
  if (named.length === 0) return null;
  // Names are short, so only the end of a long text matters.
  const start = Math.max(0, caret - 60);
  const found = /(?:^|\s)\/([\p{L}\p{N}_-]*)$/u.exec(text.slice(start, caret));
  if (!found || (start > 0 && found.index === 0 && !/^\s/.test(found[0]))) return null;
  const typed = (found[1] ?? '').toLowerCase();
  const begins = named.filter(({ name }) => name !== '' && name.toLowerCase().startsWith(typed));
  const holds = named.filter(
    (one) => typed !== '' && !begins.includes(one) && one.name.toLowerCase().includes(typed),
  );
  const nameless = typed === '' ? named.filter(({ name }) => name === '') : [];
  const matches = [...[...begins, ...holds].slice(0, SHOWN), ...nameless];
  return matches.length === 0 ? null : { from: caret - typed.length - 1, matches };
}

/** The text with another one in place of a name, and the new place of the caret. */
export function insertSnippet(
  text: string,
  { from }: Pick<Completion<unknown>, 'from'>,
  caret: number,
  snippet: { readonly text: string },
): { text: string; caret: number } {
  return { text: text.slice(0, from) + snippet.text + text.slice(caret), caret: from + snippet.text.length };
}
