import type { Attachment } from 'svelte/attachments';

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
    dialog.showModal();
    return () => {
      dialog.removeEventListener('cancel', cancelled);
      dialog.removeEventListener('click', clicked);
      dialog.close();
    };
  };
}
