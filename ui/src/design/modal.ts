import type { Attachment } from 'svelte/attachments';

/**
 * Clears the CSS highlights below a dialog: WebKit paints them over the dialog's first text, too. The returned function
 * restores those whose text still exists.
 */
function withoutMarks(): () => void {
  if (typeof Highlight === 'undefined') return () => {};
  const marks = [...CSS.highlights];
  CSS.highlights.clear();
  return () => {
    for (const [name, mark] of marks) {
      const there = [...mark].some((range) => !range.collapsed && range.startContainer.isConnected);
      if (there && !CSS.highlights.has(name)) CSS.highlights.set(name, mark);
    }
  };
}

/**
 * Opens a dialog over the window while its element exists. The browser keeps the focus inside and restores it
 * afterwards; `close` is called on Escape and, with `byBackdrop`, on a click outside the dialog's content.
 */
export function modal(close: () => void, { byBackdrop }: { byBackdrop: boolean }): Attachment<HTMLDialogElement> {
  return (dialog) => {
    const cancelled = (event: Event): void => {
      event.preventDefault();
      close();
    };
    // A click on the backdrop is a click on the dialog itself.
    const clicked = (event: Event): void => {
      if (event.target === dialog) close();
    };
    dialog.addEventListener('cancel', cancelled);
    if (byBackdrop) dialog.addEventListener('click', clicked);
    const mark = withoutMarks();
    dialog.showModal();
    return () => {
      dialog.removeEventListener('cancel', cancelled);
      dialog.removeEventListener('click', clicked);
      dialog.close();
      mark();
    };
  };
}
