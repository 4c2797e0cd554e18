/**
 * The focus is never lost to nothing. A control that had it and goes away, or can no longer be used, hands it on: whoever
 * works by keyboard, or by a screen reader, stays where the work is.
 */

/** Calls `home` whenever the element that has the focus goes away. The function ends that. */
export function keepFocus(root: Document, home: () => void): () => void {
  let last: Element | null = null;
  const focused = (event: FocusEvent): void => {
    if (event.target instanceof Element) last = event.target;
  };
  const check = (): void => {
    if (!last || (last.isConnected && !isDisabled(last))) return;
    const now = root.activeElement;
    const lost = now === null || now === root.body || now === last;
    last = null;
    if (lost) home();
  };
  root.addEventListener('focusin', focused);
  const observer = new MutationObserver(check);
  observer.observe(root.body, { childList: true, subtree: true, attributes: true, attributeFilter: ['disabled'] });
  return () => {
    root.removeEventListener('focusin', focused);
    observer.disconnect();
  };
}

function isDisabled(element: Element): boolean {
  return element instanceof HTMLButtonElement && element.disabled;
}

/** Puts the focus where a window has its home: what is marked with `data-focus-home`. */
export function focusHome(): void {
  document.querySelector<HTMLElement>('[data-focus-home]')?.focus();
}
