/** The HTML that an answer may hold. The rest is shown as it is written, so that nothing vanishes. */

/** No element with which an answer could dress up as a part of the window, that loads, runs or is filled in. */
export const ANSWER_TAGS = [
  'a', 'abbr', 'b', 'blockquote', 'br', 'caption', 'cite', 'code', 'dd', 'del', 'details', 'dl', 'dt', 'em',
  'figure', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'ins', 'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's',
  'small', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr', 'u',
  'ul',
];

const DRAWN: ReadonlySet<string> = new Set(ANSWER_TAGS);
/** Inside a line they would end the table around them. */
const OF_TABLES: ReadonlySet<string> = new Set(['caption', 'table', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr']);
/** A whole tag with its name, or what a web view takes for the beginning of something that is not drawn. */
const TAG = /<\/?([a-z][a-z0-9]*)(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?\/?>|<[a-z/!?]/gi;

/** True if every tag of this HTML is drawn. */
export function isDrawn(html: string, inLine: boolean): boolean {
  for (const [, tag] of html.matchAll(TAG)) {
    const name = tag?.toLowerCase();
    if (name === undefined || !DRAWN.has(name) || (inLine && OF_TABLES.has(name))) return false;
  }
  return true;
}
