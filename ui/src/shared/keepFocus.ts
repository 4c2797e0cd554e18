/**
 * The focus is never lost. A control that had it and disappears hands it on, so that users of a keyboard or a screen
 * reader stay where they work.
 */

import { tick } from 'svelte';

/**
 * Calls `home` whenever the focused element disappears. One that is disabled for a while, or moved, gets the focus
 * again afterwards. The returned function ends that.
 */
export function keepFocus(root: Document, home: () => void): () => void {
  let last: Element | null = null;
  let disabled = false;
  /** True if the user left it without a new target. */
  let left = false;
  const focused = (event: FocusEvent): void => {
    if (!(event.target instanceof Element)) return;
    last = event.target;
    disabled = false;
    left = false;
  };
  const blurred = (event: FocusEvent): void => {
    left = event.target instanceof Element && event.target.isConnected && event.relatedTarget === null;
  };
  const check = (records: readonly MutationRecord[]): void => {
    if (!last) return;
    const before = last;
    const lost = root.activeElement === null || root.activeElement === root.body;
    if (!before.isConnected) {
      last = null;
      if (lost) home();
      return;
    }
    const was = disabled;
    disabled = isDisabled(before);
    const moved = !left && records.some(({ removedNodes }) => [...removedNodes].some((node) => node.contains(before)));
    if (((was && !disabled) || moved) && lost && before instanceof HTMLElement) before.focus();
  };
  root.addEventListener('focusin', focused);
  root.addEventListener('focusout', blurred);
  const observer = new MutationObserver(check);
  observer.observe(root.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['disabled'] });
  return () => {
    root.removeEventListener('focusin', focused);
    root.removeEventListener('focusout', blurred);
    observer.disconnect();
  };
}

function isDisabled(element: Element): boolean {
  return element instanceof HTMLButtonElement && element.disabled;
}

/** Moves the focus to the window's home: the element marked with `data-focus-home`. */
export function focusHome(): void {
  document.querySelector<HTMLElement>('[data-focus-home]')?.focus();
}

/** Gives the focus back to the window's home, once what has changed is drawn. */
export function returnFocus(): void {
  void tick().then(focusHome);
}

/** Gives the focus to the window's home, once what has changed is drawn, unless the user has put it elsewhere. */
export function offerFocus(): void {
  void tick().then(() => {
    if (document.activeElement === null || document.activeElement === document.body) focusHome();
  });
}
