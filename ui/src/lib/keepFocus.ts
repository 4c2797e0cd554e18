/**
 * The focus is never lost to nothing. A control that had it and goes away hands it on: whoever works by keyboard, or by a screen
 * reader, stays where the work is.
 */

/**
 * Calls `home` whenever the element that has the focus goes away. One that could not be used for a while has the focus again
 * afterwards. The function ends that.
 */
export function keepFocus(root: Document, home: () => void): () => void {
  let last: Element | null = null;
  let disabled = false;
  const focused = (event: FocusEvent): void => {
    if (!(event.target instanceof Element)) return;
    last = event.target;
    disabled = false;
  };
  const check = (): void => {
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
    if (was && !disabled && lost && before instanceof HTMLElement) before.focus();
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
