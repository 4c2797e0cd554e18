/** GGUF files by their names. */

/** True if a path names a GGUF file. */
export const isGguf = (path: string): boolean => path.toLowerCase().endsWith('.gguf');
