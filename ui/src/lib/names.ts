/** Names as they can be shown: one line, in the order in which they are written. */

// Marks that turn the order of letters around, so that a program could be read as a picture (U+202E), and what is not seen at all.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g;

/** The name without what changes how it is read. */
export function plainName(name: string): string {
  return name.replace(/[\n\r\t]+/g, ' ').replace(UNSEEN, '');
}
