/** How long a piece of a long text is, in characters. */
export const PIECE = 4000;

/** A text in pieces that end with a line if they can. A text that grows keeps all pieces but the last. */
export function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  while (text.length - start > PIECE) {
    const line = text.lastIndexOf('\n', start + PIECE);
    const end = line > start ? line : start + PIECE;
    pieces.push(text.slice(start, end));
    start = line > start ? end + 1 : end;
  }
  pieces.push(text.slice(start));
  return pieces;
}
