/** The palette's results for some words. Pure. */

import type { ChatSummary } from '../../bindings/ChatSummary';
import type { HistoryHit } from '../../bindings/HistoryHit';
import { chatTitle, searchedTitle } from '../../format/format';
import { folded } from '../../shared/findText';
import type { RowName } from '../settingsSearch/rows';

/** Something that can be chosen. */
export type PaletteEntry<Command> =
  | { kind: 'command'; command: Command; label: string }
  | { kind: 'chat'; chat: ChatSummary; label: string }
  | { kind: 'setting'; row: RowName; label: string }
  | { kind: 'model'; reference: string; label: string }
  | { kind: 'hit'; hit: HistoryHit; label: string };

/** The most offers of one kind. */
const EACH = 8;

/** The score of a folded name for folded words, smaller is better; `null` if it does not contain them all. */
export function score(name: string, words: readonly string[]): number | null {
  let sum = 0;
  for (const word of words) {
    const at = name.indexOf(word);
    if (at < 0) return null;
    const begins = at === 0 || !/[\p{L}\p{N}]/u.test(name[at - 1] ?? '');
    sum += (begins ? 0 : 100) + Math.min(at, 99);
  }
  return sum;
}

/** The items with the best scores, best first. Thousands of chats pass at each letter, so only a few are ever held. */
function best<Item>(items: readonly Item[], name: (item: Item) => string, words: readonly string[]): Item[] {
  const top: { item: Item; rank: number }[] = [];
  for (const item of items) {
    const rank = score(name(item), words);
    if (rank === null) continue;
    const worse = top.findIndex((other) => other.rank > rank);
    if (worse < 0 && top.length === EACH) continue;
    top.splice(worse < 0 ? top.length : worse, 0, { item, rank });
    if (top.length > EACH) top.pop();
  }
  return top.map(({ item }) => item);
}

/** The best of each kind for these words; without words, commands, and chats in their order. */
export function offered<Command>(
  query: string,
  all: {
    commands: readonly PaletteEntry<Command>[];
    chats: readonly ChatSummary[];
    settings: readonly PaletteEntry<Command>[];
    models: readonly PaletteEntry<Command>[];
    hits: readonly PaletteEntry<Command>[];
  },
): PaletteEntry<Command>[] {
  const words = folded(query).split(/\s+/).filter(Boolean);
  const label = ({ label }: PaletteEntry<Command>) => folded(label);
  const found = words.length > 0 ? best(all.chats, searchedTitle, words) : all.chats.slice(0, EACH);
  const chats = found.map((chat) => ({ kind: 'chat' as const, chat, label: chatTitle(chat.title) }));
  if (words.length === 0) return [...chats, ...all.commands];
  return [
    ...best(all.commands, label, words),
    ...chats,
    ...best(all.settings, label, words),
    ...best(all.models, label, words),
    ...all.hits.slice(0, EACH),
  ];
}
