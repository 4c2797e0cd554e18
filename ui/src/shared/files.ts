/** Documents on their way into a question. */

import type { Content } from '../bindings/Content';
import type { Excerpt } from '../bindings/Excerpt';
import type { AttachmentContent } from './messageParts';

/** A document of a message. */
export type FileContent = Extract<AttachmentContent, { kind: 'file' }>;

/**
 * The longest file that is read, in bytes. The host has the same limit, but a page would load the whole file before the
 * host could refuse it.
 */
export const LONGEST_FILE = 50_000_000;

/** A pasted text of more characters becomes a file. */
export const LONG_PASTE = 8000;

/** Endings of images of which web views do not tell the type. */
const IMAGES = /\.(?:png|apng|jpe?g|jfif|gif|webp|bmp|tiff?|heic|heif|avif|svg)$/i;

/** True if a file is shown to a model as an image rather than read as text. */
export function isImage(file: Pick<File, 'name' | 'type'>): boolean {
  return file.type.startsWith('image/') || IMAGES.test(file.name);
}

/** The documents among the parts. */
export function filesOf(parts: readonly Content[]): FileContent[] {
  return parts.filter((part) => part.kind === 'file');
}

/** True if the excerpt is the full text. */
export function isWhole({ first, last, of }: Excerpt): boolean {
  return first <= 1 && last >= of;
}

/** The part from `first` to `last`, in either order, within the file. */
export function partOf(excerpt: Excerpt, first: number, last: number): Excerpt {
  const within = (place: number): number => Math.min(Math.max(Math.round(place) || 1, 1), excerpt.of);
  return { ...excerpt, first: Math.min(within(first), within(last)), last: Math.max(within(first), within(last)) };
}

/** The number of lines in one step; a page is read in full. */
const LINES = 400;

/** Spans of pieces that are read at once: from (counted from 0) and to (not included). */
export function spans(unit: Excerpt['unit'], pieces: number): { from: number; to: number }[] {
  const step = unit === 'pages' ? 1 : LINES;
  return Array.from({ length: Math.ceil(pieces / step) }, (_, index) => ({
    from: index * step,
    to: Math.min((index + 1) * step, pieces),
  }));
}
