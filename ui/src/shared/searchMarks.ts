/** A text in pieces, of which some are marked. */

/** The pieces of a text between and in these marks, which are in order and do not overlap. */
export function pieces(
  text: string,
  marks: readonly (readonly [number, number])[],
): { text: string; marked: boolean }[] {
  const result: { text: string; marked: boolean }[] = [];
  let at = 0;
  for (const [from, to] of marks) {
    if (from > at) result.push({ text: text.slice(at, from), marked: false });
    if (to > Math.max(at, from)) result.push({ text: text.slice(Math.max(at, from), to), marked: true });
    at = Math.max(at, to);
  }
  if (at < text.length) result.push({ text: text.slice(at), marked: false });
  return result;
}

/** The same as nodes: a list draws dozens of them between two letters, and a component for each piece takes too long. */
export function markedNodes(text: string, marks: readonly (readonly [number, number])[]): Node[] {
  return pieces(text, marks).map(({ text, marked }) => {
    if (!marked) return document.createTextNode(text);
    const mark = document.createElement('mark');
    mark.textContent = text;
    return mark;
  });
}
