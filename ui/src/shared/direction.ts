/** The direction in which the language of the windows is written. */

/** True if the page is read from right to left. */
export function rightToLeft(): boolean {
  return document.documentElement.dir === 'rtl';
}

/** The step of an arrow key in a row: 1 to the next, -1 to the previous, 0 for other keys. */
export function stepOf(key: string): -1 | 0 | 1 {
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return 0;
  return (key === 'ArrowRight') === rightToLeft() ? -1 : 1;
}
