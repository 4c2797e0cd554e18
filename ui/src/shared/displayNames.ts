/** Names as they can be shown: one line, in the order in which they are written. */

// Marks that turn the order of letters around, so that a program could be read as an image (U+202E), and what is not
// seen at all.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g;

/** The name without characters that change its reading order. */
export function plainName(name: string): string {
  return name.replace(/[\n\r\t]+/g, ' ').replace(UNSEEN, '');
}

/** The length of text that decides its direction. */
const TELLING = 2000;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc]/;
const LETTER = /\p{L}|\u200f/u;

/**
 * The `dir` of a text of any length. With `auto`, a web view reads the text up to its first letter, and again with
 * every new piece.
 */
export function directionOf(text: string): 'auto' | 'ltr' | 'rtl' {
  if (text.length <= TELLING) return 'auto';
  const letter = LETTER.exec(text.slice(0, TELLING));
  return letter && RIGHT_TO_LEFT.test(letter[0]) ? 'rtl' : 'ltr';
}
