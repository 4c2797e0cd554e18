/** Passages of documents in the parts of messages. */

import type { Content } from '../bindings/Content';
import type { Coverage } from '../bindings/Coverage';
import type { QuotedPassage } from '../bindings/QuotedPassage';

/** The id of the collection of the user's own chats. */
export const OWN_CHATS = 'chats';

/** The part of a message that carries passages. */
export type PassagesContent = Extract<Content, { kind: 'passages' }>;

/** The parts that carry passages. */
export function passageParts(parts: readonly Content[]): PassagesContent[] {
  return parts.filter((part): part is Extract<typeof part, { kind: 'passages' }> => part.kind === 'passages');
}

/** The number of files that these passages are from. */
export function countFiles(passages: readonly QuotedPassage[]): number {
  return new Set(passages.map(({ collection, file }) => `${collection}\n${file}`)).size;
}

/** True if every passage of all documents with text was read. */
export function isWhole({ passages, of_passages }: Coverage): boolean {
  return of_passages > 0 && passages >= of_passages;
}
