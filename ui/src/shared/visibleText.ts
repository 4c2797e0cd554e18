import { unfold } from './folded';

/** The text of an element as it is displayed; a formula counts once. */
export function visibleText(element: HTMLElement): string {
  // jsdom draws nothing, so it knows no text as it is seen.
  return element.innerText ?? element.textContent ?? '';
}

/** A table as programs take it: a line for each row, a tab between cells; also rows that are not drawn yet. */
export function tableText(table: HTMLTableElement): string {
  const cell = (element: HTMLTableCellElement): string => visibleText(element).replace(/\s+/g, ' ').trim();
  const around = table.closest('[data-folded]')?.parentElement;
  if (around) unfold(around);
  return [...table.rows].map((row) => [...row.cells].map(cell).join('\t')).join('\n');
}
