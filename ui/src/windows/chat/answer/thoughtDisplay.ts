/** When the words of a thought are seen that nobody opened, for all thoughts of a window. */

import { getContext, setContext } from 'svelte';

import type { ThoughtDisplay } from '../../../bindings/ThoughtDisplay';

const KEY = Symbol('thoughts');

/** Tells everything below how it is set. */
export function provideThoughtDisplay(display: () => ThoughtDisplay): void {
  setContext(KEY, display);
}

/** How it is set. */
export function thoughtDisplay(): () => ThoughtDisplay {
  return getContext<(() => ThoughtDisplay) | undefined>(KEY) ?? ((): ThoughtDisplay => 'while_thinking');
}
