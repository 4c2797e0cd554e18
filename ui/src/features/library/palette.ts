/** The palette's results for some words. Pure. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { HistoryHit } from '../../bindings/HistoryHit';
import { matchesIn } from '../../shared/findText';

/** Something that can be chosen. */
export type PaletteEntry<Command> =
  | { kind: 'command'; command: Command; label: string }
  | { kind: 'chat'; chat: ChatSummary; label: string }
  | { kind: 'model'; reference: string; label: string }
  | { kind: 'hit'; hit: HistoryHit; label: string };

/** The most offers of one kind. */
const EACH = 8;

/** The score of a name for some words, smaller is better; `null` if it does not contain them all. */
export function score(name: string, words: readonly string[]): number | null {
  let sum = 0;
  for (const word of words) {
    const [first] = matchesIn(name, word);
    if (!first) return null;
    const begins = first[0] === 0 || !/[\p{L}\p{N}]/u.test(name[first[0] - 1] ?? '');
    sum += (begins ? 0 : 100) + Math.min(first[0], 99);
  }
  return sum;
}

/** The best of each kind for these words; without words, commands, and chats in their order. */
export function offered<Command>(
  query: string,
  all: {
    commands: readonly PaletteEntry<Command>[];
    chats: readonly PaletteEntry<Command>[];
    models: readonly PaletteEntry<Command>[];
    hits: readonly PaletteEntry<Command>[];
  },
): PaletteEntry<Command>[] {
  const words = query.split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...all.chats.slice(0, EACH), ...all.commands];
  const best = (entries: readonly PaletteEntry<Command>[]): PaletteEntry<Command>[] =>
    entries
      .flatMap((entry) => {
        const rank = score(entry.label, words);
        return rank === null ? [] : [{ entry, rank }];
      })
      .sort((a, b) => a.rank - b.rank)
      .slice(0, EACH)
      .map(({ entry }) => entry);
  return [...best(all.commands), ...best(all.chats), ...best(all.models), ...all.hits.slice(0, EACH)];
}
