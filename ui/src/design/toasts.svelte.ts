/** Short messages at the window's edge. */

import { createContext } from 'svelte';

import { errorWords } from '../locales/host';
import { asHostError, type HostError } from '../host';

/** A message. It leaves by itself unless it is an error, which waits to be read. */
export interface Toast {
  id: number;
  /** The thing that failed, over the text; `null` if nothing did. */
  title: string | null;
  text: string;
  /** The text that "Copy details" copies; present if the toast is an error. */
  details: string | null;
  /** The operation that failed, or the thing that was done. The toast leaves once that is settled. */
  cause: string | null;
  /** A button, such as Undo. */
  action: { label: string; run: () => void } | null;
  /** Called when it is no longer shown, for whatever reason. */
  gone: (() => void) | null;
  /** The surface over the window that was open when it came; `null`: the window itself. */
  surface: string | null;
}

/** The reporting interface of stores that share one cause. */
export interface Reporter {
  say(text: string): void;
  report(reason: unknown): void;
}

/** Runs a call and reports why it was rejected; resolves to whether it succeeded. */
export async function attempt(toasts: Pick<Reporter, 'report'>, call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (reason) {
    toasts.report(reason);
    return false;
  }
}

/** The time that a toast without an error stays, in milliseconds. */
export const TOAST_TIME = 8000;

export class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  /** The surfaces over the window; the last one shows what is said now, because nothing below it can be read. */
  #surfaces: readonly string[] = [];
  #next = 1;

  /** `remedy` gives the button of an error. */
  constructor(private readonly remedy: (error: HostError) => Toast['action'] = () => null) {}

  get #top(): string | null {
    return this.#surfaces.at(-1) ?? null;
  }

  /** Puts a surface over the window until the returned function is called; its toasts are then shown below it. */
  cover(surface: string): () => void {
    this.#surfaces = [...this.#surfaces, surface];
    return () => {
      this.#surfaces = this.#surfaces.filter((other) => other !== surface);
      this.shown = this.shown.map((toast) => (toast.surface === surface ? { ...toast, surface: this.#top } : toast));
    };
  }

  /** The toasts of a surface, or of the window (`null`). What was said before a surface opened stays below it. */
  on(surface: string | null): readonly Toast[] {
    return this.shown.filter((toast) => toast.surface === surface);
  }

  /** Shows a message, with a button if something can be done about it; returns its number. */
  say(
    text: string,
    action: Toast['action'] = null,
    { cause = null, gone = null }: Partial<Pick<Toast, 'cause' | 'gone'>> = {},
  ): number {
    const id = this.#next++;
    this.#add({ id, title: null, text, details: null, cause, action, gone, surface: this.#top });
    return id;
  }

  /**
   * Shows why a call was rejected. The same error twice is one toast, on the surface that is on top now. `cause` names
   * the attempt, so that the toast goes away once it has succeeded or does not matter.
   */
  report(reason: unknown, cause: string | null = null): void {
    const error = asHostError(reason);
    const { title, text } = errorWords(error);
    const twin = this.shown.find((toast) => toast.title === title && toast.text === text);
    if (twin) {
      this.shown = this.shown.map((toast) => (toast === twin ? { ...toast, surface: this.#top } : toast));
      return;
    }
    const details = JSON.stringify(error, null, 2);
    const id = this.#next++;
    const action = this.remedy(error);
    this.#add({ id, title, text, details, cause, action, gone: null, surface: this.#top });
  }

  /** Removes the toasts of a cause that has succeeded, was taken back, or does not matter. */
  settle(cause: string): void {
    if (this.shown.some((toast) => toast.cause === cause))
      this.#show(this.shown.filter((toast) => toast.cause !== cause));
  }

  /** Runs a call; shows why it was rejected, until one of this cause has succeeded. Resolves to whether it did. */
  async attempt(call: () => Promise<unknown>, cause: string): Promise<boolean> {
    const done = await attempt({ report: (reason) => this.report(reason, cause) }, call);
    if (done) this.settle(cause);
    return done;
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
