/** The messages of the window, for surfaces that lie over it and show them in its place. */

import { getContext, setContext } from 'svelte';

import type { Toasts } from '../stores/toasts.svelte';

const KEY = Symbol('toasts');

/** Makes the messages of a window known to its components. */
export function provideToasts(toasts: Toasts): void {
  setContext(KEY, toasts);
}

/** The messages of the window; `undefined` outside of one. */
export function useToasts(): Toasts | undefined {
  return getContext<Toasts | undefined>(KEY);
}
