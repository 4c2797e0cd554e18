/** Polling that pauses while the user is away from the window. */

/**
 * Runs something now, whenever the window comes to the front or is shown again, and while it is used at most every
 * `every` milliseconds. Nothing runs while the window is idle. The returned function ends that.
 */
export function whileUsed(run: () => void, every: number, page: Window = window): () => void {
  let ran = -Infinity;
  const now = (): void => {
    ran = performance.now();
    run();
  };
  const used = (): void => {
    if (performance.now() - ran >= every) now();
  };
  const shown = (): void => {
    if (!page.document.hidden) now();
  };
  const heard: [EventTarget, string, () => void][] = [
    [page, 'focus', now],
    [page, 'pointermove', used],
    [page, 'pointerdown', used],
    [page, 'keydown', used],
    [page, 'wheel', used],
    [page.document, 'visibilitychange', shown],
  ];
  for (const [target, type, listener] of heard) target.addEventListener(type, listener, { passive: true });
  now();
  return () => {
    for (const [target, type, listener] of heard) target.removeEventListener(type, listener);
  };
}
