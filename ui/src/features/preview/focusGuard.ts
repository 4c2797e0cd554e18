/**
 * A frame may take the focus once a person has clicked in it: WebKit lets its scripts do so from then on, also while
 * the person writes elsewhere, and the keys would go there. Neither the sandbox nor `inert` prevents that in WebKitGTK
 * 2.50, so it is noticed.
 */

/** A key that was pressed at most this long ago explains where the focus goes, in milliseconds. */
const RECENT = 600;

/**
 * Calls `taken` when the frame takes the focus without a click in it or the Tab key, and gives the focus back. The
 * returned function ends that.
 */
export function guardFocus(frame: HTMLIFrameElement, taken: () => void): () => void {
  let last = { tab: false, at: -Infinity };
  let focused: HTMLElement | null = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  const pressed = ({ key }: KeyboardEvent): void => void (last = { tab: key === 'Tab', at: performance.now() });
  const moved = ({ target }: FocusEvent): void => {
    if (target instanceof HTMLElement && target !== frame) focused = target;
  };
  const left = (): void => {
    if (document.activeElement !== frame) return;
    const recent = performance.now() - last.at < RECENT;
    // A click puts the pointer over the frame; who writes at that moment did not click.
    if (recent ? last.tab : frame.matches(':hover')) return;
    taken();
    focused?.focus();
  };
  addEventListener('keydown', pressed, true);
  document.addEventListener('focusin', moved);
  addEventListener('blur', left);
  return () => {
    removeEventListener('keydown', pressed, true);
    document.removeEventListener('focusin', moved);
    removeEventListener('blur', left);
  };
}
