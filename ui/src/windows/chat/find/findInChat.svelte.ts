/** Find in the open chat: all of its branch, rendered or not. */

import type { StoredMessage } from '../../../bindings/StoredMessage';
import { matchesIn, readText } from '../../../shared/findText';
import { attachmentsOf, textOf } from '../../../shared/messageParts';
import { entries, entryKey, holds, turnText, type Entry } from '../../../shared/turns';

/** A match. */
export interface Match {
  /** The question or turn, as the list calls it. */
  row: string;
  /** The index of the match in that row, from 0. */
  nth: number;
}

/** The text of an entry that the user reads. */
function readable(entry: Entry): string {
  if (entry.kind === 'turn') return readText(turnText(entry.rows));
  const { parts } = entry.message;
  const names = attachmentsOf(parts).map((part) =>
    part.kind === 'file' ? part.name : part.kind === 'image' ? part.alt : '',
  );
  return [...names, textOf(parts)].join('\n');
}

export class FindInChat {
  open = $state(false);
  words = $state('');
  /** The index of the current match, from 0. */
  #at = $state(0);
  /** Grows with each step, so that the same match is scrolled to again. */
  steps = $state(0);
  /** A message that was opened from the search over all chats, and the words of that search. */
  jump = $state.raw<{ row: string; words: readonly string[] } | null>(null);
  readonly #texts = new WeakMap<StoredMessage, string>();
  #messages = $state.raw<readonly StoredMessage[]>([]);

  readonly matches = $derived.by((): Match[] => {
    if (!this.open || this.words.trim() === '') return [];
    return entries(this.#messages).flatMap((entry) => {
      const row = entryKey(entry);
      return matchesIn(this.#text(entry), this.words).map((_, nth) => ({ row, nth }));
    });
  });

  /** The number of the current match, from 1; 0 without any. */
  get place(): number {
    return this.matches.length === 0 ? 0 : Math.min(this.#at, this.matches.length - 1) + 1;
  }

  get current(): Match | null {
    return this.matches[this.place - 1] ?? null;
  }

  /** Looks at these messages from now on. */
  look(messages: readonly StoredMessage[]): void {
    this.#messages = messages;
    if (this.jump && !entries(messages).some((entry) => entryKey(entry) === this.jump?.row)) this.jump = null;
  }

  /** Searches for other words, from the first match on. */
  write(words: string): void {
    this.words = words;
    this.#at = 0;
    this.steps += 1;
  }

  /** Goes to the next place, or to the one before; after the last comes the first. */
  step(by: number): void {
    const count = this.matches.length;
    if (count === 0) return;
    this.#at = (this.place - 1 + by + count) % count;
    this.steps += 1;
  }

  start(): void {
    this.open = true;
    this.jump = null;
    this.steps += 1;
  }

  close(): void {
    this.open = false;
    this.jump = null;
  }

  /** Highlights these words in a message of the open chat. */
  show(message: string, words: readonly string[]): void {
    const entry = entries(this.#messages).find((one) => holds(one, message));
    this.open = false;
    this.jump = entry && words.length > 0 ? { row: entryKey(entry), words } : null;
    this.steps += 1;
  }

  /** An entry's text is computed once; messages are replaced when they change. */
  #text(entry: Entry): string {
    const last = entry.kind === 'question' ? entry.message : entry.rows.at(-1);
    if (!last) return '';
    const known = entry.kind === 'question' || entry.rows.length === 1 ? this.#texts.get(last) : undefined;
    if (known !== undefined) return known;
    const text = readable(entry);
    this.#texts.set(last, text);
    return text;
  }
}
