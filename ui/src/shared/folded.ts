/** Parts of a text that are not drawn until they are needed, such as the many rows of a table. */

const UNFOLD = 'unfold';

/** Draws all that is folded in an element. */
export function unfold(element: Element): void {
  for (const folded of element.querySelectorAll('[data-folded]')) folded.dispatchEvent(new Event(UNFOLD));
}

/** Runs `draw` when what this element folds is needed. */
export function folds(element: Element, draw: () => void): () => void {
  element.addEventListener(UNFOLD, draw);
  return () => element.removeEventListener(UNFOLD, draw);
}
