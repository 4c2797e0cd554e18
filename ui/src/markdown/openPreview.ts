/** A code block's way to the preview, at any depth of a chat. */

import { getContext, setContext } from 'svelte';

import type { ArtifactKind } from './artifact';

/** Shows code as what it makes. */
export type OpenPreview = (kind: ArtifactKind, code: string) => void;

const KEY = Symbol('open preview');

/** Lets the components inside this one open the preview. */
export function provideOpenPreview(open: OpenPreview): void {
  setContext(KEY, open);
}

/** `undefined` in windows without a preview. */
export function useOpenPreview(): OpenPreview | undefined {
  return getContext<OpenPreview | undefined>(KEY);
}
