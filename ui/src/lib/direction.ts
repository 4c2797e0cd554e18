/** The direction in which the language of the windows is written. */

/** Whether the page is read from right to left. */
export function rightToLeft(): boolean {
  return document.documentElement.dir === 'rtl';
}

/** Where an arrow key leads in a row: 1 to what comes next, -1 to what came before, 0 if it is no such key. */
export function stepOf(key: string): -1 | 0 | 1 {
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return 0;
  return (key === 'ArrowRight') === rightToLeft() ? -1 : 1;
}
