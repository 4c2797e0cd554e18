/** The length of a chunk, in characters. */
export const CHUNK = 4000;

/** A text in chunks that end at a line if possible. A text that grows keeps all chunks but the last. */
export function chunksOf(text: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  while (text.length - start > CHUNK) {
    const line = text.lastIndexOf('\n', start + CHUNK);
    const end = line > start ? line : start + CHUNK;
    pieces.push(text.slice(start, end));
    start = line > start ? end + 1 : end;
  }
  pieces.push(text.slice(start));
  return pieces;
}
