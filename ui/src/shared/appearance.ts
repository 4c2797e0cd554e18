/** The page's look: attributes of its root, which the style sheet uses. */

import type { Appearance } from '../bindings/Appearance';

/** The sizes of text that are offered, in percent. */
export const TEXT_SIZES = [85, 100, 115, 130, 150, 200] as const;

/** The steps of the zoom, in percent. */
export const ZOOMS = [50, 67, 75, 80, 90, 100, 110, 125, 150, 175, 200, 250, 300] as const;

/** The next zoom in this direction; the same at the end of the steps. */
export function nextZoom(zoom: number, step: 1 | -1): number {
  const steps = step > 0 ? ZOOMS : [...ZOOMS].reverse();
  return steps.find((other) => (step > 0 ? other > zoom : other < zoom)) ?? zoom;
}

/** Lets the page look so; `dark` is how the system is set. The zoom is the window's own. */
export function applyAppearance(
  root: HTMLElement,
  { theme, text_size, density, code_theme, width }: Appearance,
  dark: boolean,
): void {
  root.dataset['theme'] = theme === 'system' ? (dark ? 'dark' : 'light') : theme;
  root.dataset['density'] = density;
  root.dataset['code'] = code_theme;
  root.dataset['width'] = width;
  root.style.fontSize = text_size === 100 ? '' : `${text_size}%`;
}
