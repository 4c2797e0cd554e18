import type { Attachment } from 'svelte/attachments';

/** Takes what is marked off the text below: WebKit paints the first words of a dialog as marked, too. The function marks again what is still there. */
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
 * Opens a dialog over the window while it is there. The browser keeps the focus inside and gives it back afterwards; `close` is called on
 * Escape, and on a click beside the dialog's content if that is a way out of it.
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
