/** JSON whose whole numbers stay as they are written: those that a page would round are `bigint`s. */

export type Exact = null | boolean | number | bigint | string | Exact[] | ExactObject;
export type ExactObject = { [key in string]: Exact };

/** Texts and numbers of a JSON text. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WHOLE = /^-?\d+$/;

/** The value that a JSON text says; `undefined` if it says none. */
export function parseExact(text: string): Exact | undefined {
  try {
    // Whatever is no JSON is not made one by what follows.
    JSON.parse(text);
    const mark = markFor(text);
    const marked = text.replace(TOKENS, (token) =>
      WHOLE.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
    );
    const value: Exact = JSON.parse(marked, (_, inner: Exact) =>
      typeof inner === 'string' && inner.startsWith(mark) ? BigInt(inner.slice(mark.length)) : inner,
    );
    return value;
  } catch {
    return undefined;
  }
}

/** The JSON text of a value. */
export function exactText(value: Exact, indent = 0): string {
  const plain = JSON.stringify(value, (_, inner: Exact) => (typeof inner === 'bigint' ? '' : inner));
  const mark = markFor(plain);
  const marked = JSON.stringify(value, (_, inner: Exact) => (typeof inner === 'bigint' ? `${mark}${inner}` : inner), indent);
  return marked.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1');
}

/** Letters that do not occur in a text. */
function markFor(text: string): string {
  let mark = 'number:';
  while (text.includes(mark)) mark = `${mark}:`;
  return mark;
}
