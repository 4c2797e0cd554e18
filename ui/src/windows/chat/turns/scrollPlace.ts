/** The scroll position of a chat: its first message in view, and the share of it above the view. */

import type { ScrollPlace } from '../../../bindings/ScrollPlace';

/** The place that an area of messages is scrolled to; `null` if it has none. */
export function placeIn(area: HTMLElement): ScrollPlace | null {
  const { top } = area.getBoundingClientRect();
  for (const element of area.querySelectorAll<HTMLElement>('[data-message-id]')) {
    const box = element.getBoundingClientRect();
    const message = element.dataset['messageId'];
    if (message && box.bottom > top + 1) return { message, offset: Math.round(top - box.top) };
  }
  return null;
}

/** Scrolls to a place; `false` if its message is not drawn. */
export function align(area: HTMLElement, { message, offset }: ScrollPlace): boolean {
  const found = [...area.querySelectorAll<HTMLElement>('[data-message-id]')].find(
    ({ dataset }) => dataset['messageId'] === message,
  );
  if (!found) return false;
  const moved = found.getBoundingClientRect().top - area.getBoundingClientRect().top + offset;
  if (Math.abs(moved) >= 1) area.scrollTop += moved;
  return true;
}
