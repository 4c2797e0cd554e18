/** Short messages at the window's edge. */

import { errorText } from '../messages/host';
import { asHostError } from '../platform';

/** A message. It leaves by itself unless it is an error, which waits to be read. */
export interface Toast {
  id: number;
  text: string;
  /** What "Copy details" copies; present if the toast is an error. */
  details: string | null;
  /** A button, such as Undo. */
  action: { label: string; run: () => void } | null;
}

/** How long a toast without an error stays, in milliseconds. */
export const TOAST_TIME = 8000;

export class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  #next = 1;

  /** Shows a message, with a button if something can be done about it. */
  say(text: string, action: Toast['action'] = null): void {
    this.#show({ id: this.#next++, text, details: null, action });
  }

  /** Shows why a call was rejected. The same error twice is one toast. */
  report(reason: unknown): void {
    const error = asHostError(reason);
    const text = errorText(error);
    if (this.shown.some((toast) => toast.details !== null && toast.text === text)) return;
    this.#show({ id: this.#next++, text, details: JSON.stringify(error, null, 2), action: null });
  }

  /** Takes a message away. */
  dismiss(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }

  #show(toast: Toast): void {
    this.shown = [...this.shown.slice(-2), toast];
  }
}
