/** Short messages at the window's edge. */

import { createContext } from 'svelte';

import { errorText } from '../locales/host';
import { asHostError } from '../host';

/** A message. It leaves by itself unless it is an error, which waits to be read. */
export interface Toast {
  id: number;
  text: string;
  /** The text that "Copy details" copies; present if the toast is an error. */
  details: string | null;
  /** The failed operation, if it can recover: its success removes the toast. */
  cause: string | null;
  /** A button, such as Undo. */
  action: { label: string; run: () => void } | null;
  /** Called when it is no longer shown, for whatever reason. */
  gone: (() => void) | null;
}

/** The reporting interface of stores. */
export interface Reporter {
  say(text: string, action?: Toast['action']): void;
  report(reason: unknown): void;
}

/** The time that a toast without an error stays, in milliseconds. */
export const TOAST_TIME = 8000;

export class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  /** The surfaces over the window; the last one shows the toasts, because nothing below it can be read or pressed. */
  #surfaces = $state.raw<readonly string[]>([]);
  #next = 1;

  /** Puts a surface over the window until the returned function is called. */
  cover(surface: string): () => void {
    this.#surfaces = [...this.#surfaces, surface];
    return () => (this.#surfaces = this.#surfaces.filter((other) => other !== surface));
  }

  /** The toasts of a surface, or of the window itself (`null`). */
  on(surface: string | null): readonly Toast[] {
    return (this.#surfaces.at(-1) ?? null) === surface ? this.shown : [];
  }

  /** Shows a message, with a button if something can be done about it; returns its number. */
  say(text: string, action: Toast['action'] = null, gone: Toast['gone'] = null): number {
    const id = this.#next++;
    this.#add({ id, text, details: null, cause: null, action, gone });
    return id;
  }

  /**
   * Shows why a call was rejected. The same error twice is one toast. `cause` names the attempt, so that the toast goes
   * away once it has succeeded or does not matter.
   */
  report(reason: unknown, cause: string | null = null): void {
    const error = asHostError(reason);
    const text = errorText(error);
    if (this.shown.some((toast) => toast.details !== null && toast.text === text)) return;
    this.#add({ id: this.#next++, text, details: JSON.stringify(error, null, 2), cause, action: null, gone: null });
  }

  /** Removes the toasts of a cause that has succeeded or does not matter. */
  settle(cause: string): void {
    if (this.shown.some((toast) => toast.cause === cause))
      this.#show(this.shown.filter((toast) => toast.cause !== cause));
  }

  /** A reporter for the parts of a window that fail for one cause. */
  about(cause: string): Reporter {
    return { say: (text, action) => void this.say(text, action), report: (reason) => this.report(reason, cause) };
  }

  /** Takes a message away. */
  dismiss(id: number): void {
    this.#show(this.shown.filter((toast) => toast.id !== id));
  }

  #add(toast: Toast): void {
    this.#show([...this.shown.slice(-2), toast]);
  }

  #show(toasts: readonly Toast[]): void {
    const gone = this.shown.filter((toast) => !toasts.includes(toast));
    this.shown = toasts;
    for (const toast of gone) toast.gone?.();
  }
}

/** The toasts of this window. */
export const [useToasts, provideToasts, hasToasts] = createContext<Toasts>();
