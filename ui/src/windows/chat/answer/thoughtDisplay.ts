/** The visibility of thoughts that are not expanded, for all thoughts of a window. */

import { getContext, setContext } from 'svelte';

import type { ThoughtDisplay } from '../../../bindings/ThoughtDisplay';

const KEY = Symbol('thoughts');

/** Tells everything below how it is set. */
export function provideThoughtDisplay(display: () => ThoughtDisplay): void {
  setContext(KEY, display);
}

/** The current setting. */
export function thoughtDisplay(): () => ThoughtDisplay {
  return getContext<(() => ThoughtDisplay) | undefined>(KEY) ?? ((): ThoughtDisplay => 'while_thinking');
}
