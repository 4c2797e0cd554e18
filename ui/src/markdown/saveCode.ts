/** A code block's way to the system's dialog, at any depth of a chat. */

import { getContext, setContext } from 'svelte';

/** Lets the user choose a file for code in this language; returns the file's name, or `null` if there is none. */
export type SaveCode = (code: string, language: string) => Promise<string | null>;

const KEY = Symbol('save code');

/** Lets the components inside this one save code. */
export function provideSaveCode(save: SaveCode): void {
  setContext(KEY, save);
}

/** `undefined` if nothing can be saved. */
export function useSaveCode(): SaveCode | undefined {
  return getContext<SaveCode | undefined>(KEY);
}
