/** Words in texts, whatever their case and their accents. Pure. */

/**
 * A text without accents in small letters, and for each of its code units where it comes from; the last entry is the
 * text's end.
 */
interface Folded {
  text: string;
  from: number[];
}

const ACCENTS = /[\u0300-\u036f]/g;
const ASCII = /^[\0-\x7f]*$/;

/** A text without accents in small letters, for comparisons that need no places in the text itself. */
export function folded(text: string): string {
  return (ASCII.test(text) ? text : text.normalize('NFD').replace(ACCENTS, '')).toLowerCase();
}

function fold(text: string): Folded {
  let folded = '';
  const from: number[] = [];
  let at = 0;
  for (const sign of text) {
    const bare = sign < '\u0080' ? sign.toLowerCase() : sign.normalize('NFD').replace(ACCENTS, '').toLowerCase();
    for (let unit = 0; unit < bare.length; unit++) from.push(at);
    folded += bare;
    at += sign.length;
  }
  from.push(text.length);
  return { text: folded, from };
}

/** The ranges of these words in a text, start and end, in order and without overlaps. */
export function matchesIn(text: string, words: string): [number, number][] {
  const wanted = fold(words).text;
  if (wanted === '') return [];
  const { text: folded, from } = fold(text);
  const found: [number, number][] = [];
  for (let at = folded.indexOf(wanted); at >= 0; at = folded.indexOf(wanted, at + wanted.length)) {
    found.push([from[at] ?? 0, from[at + wanted.length] ?? text.length]);
  }
  return found;
}

/** The terms of a search over all chats: quoted text as one, everything else word by word. */
export function searchTerms(query: string): string[] {
  const pieces = query.split('"');
  return pieces
    .flatMap((piece, index) => (index % 2 === 1 ? [piece.trim()] : piece.split(/\s+/)))
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
}

/** Markdown approximately as it is read: without formatting marks. Code keeps its text, without its fences. */
export function readText(markdown: string): string {
  return markdown
    .replace(/^[ \t]*(?:```|~~~)[^\n]*$/gm, '')
    .replace(/^[ \t]{0,3}#{1,6}[ \t]+/gm, '')
    .replace(/\]\([^()\s]{0,300}\)/g, '')
    .replace(/\*\*|__|`/g, '');
}

/** Elements whose text is no part of an answer as it is read. */
const OURS = 'button, [data-testid="thought"], [data-testid="shown-plain"], .visually-hidden, script, style';

/** The ranges of a document whose text matches these words. Text that no reader sees is left out. */
export function rangesIn(element: Element, words: readonly string[]): Range[] {
  const nodes: { node: Text; start: number }[] = [];
  let text = '';
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement?.closest(OURS)
      ? NodeFilter.FILTER_REJECT
      : NodeFilter.FILTER_ACCEPT,
  );
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!(node instanceof Text)) continue;
    nodes.push({ node, start: text.length });
    text += node.data;
  }
  const place = (at: number): { node: Text; offset: number } | null => {
    const found = nodes.findLast(({ start }) => start <= at);
    return found ? { node: found.node, offset: Math.min(at - found.start, found.node.length) } : null;
  };
  const matches = words.flatMap((word) => matchesIn(text, word)).sort(([a], [b]) => a - b);
  return matches.flatMap(([from, to]) => {
    const [start, end] = [place(from), place(Math.max(from, to - 1))];
    if (!start || !end) return [];
    const range = document.createRange();
    range.setStart(start.node, start.offset);
    range.setEnd(end.node, Math.min(end.offset + 1, end.node.length));
    return [range];
  });
}
