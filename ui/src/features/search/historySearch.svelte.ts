/** The search over all chats. */

import type { HistoryHit } from '../../bindings/HistoryHit';
import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

const DAY = 86_400_000;

/** The time that a list waits for the host's results, in milliseconds, so that it renders once and not twice. */
const PATIENCE = 80;

/** Since when something was said. */
export const SPANS = { any: null, day: 1, week: 7, month: 30, year: 365 } as const;
export type TimeSpan = keyof typeof SPANS;

/** The hits in chats that still exist, with their current titles, which are given by the chats' ids. */
export function inListed(hits: readonly HistoryHit[], titles: ReadonlyMap<string, string>): HistoryHit[] {
  return hits.flatMap((hit) => {
    const title = titles.get(hit.chat);
    return title === undefined ? [] : [title === hit.title ? hit : { ...hit, title }];
  });
}

export class HistorySearch {
  /** The hits for the current query, messages only: the list of chats finds titles. */
  hits = $state.raw<readonly HistoryHit[]>([]);
  /**
   * The words that the list shows: the searched ones, once the host has answered or takes too long. Typing waits for no
   * list.
   */
  listed = $state('');
  more = $state(false);
  indexing = $state(false);
  /** True if the hits belong to the current query. */
  settled = $state(true);
  model = $state<string | null>(null);
  span = $state<TimeSpan>('any');
  #asked = 0;
  #patience: ReturnType<typeof setTimeout> | undefined;
  /** The search that the host is at. */
  #running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Shows these words at once. */
  list(text: string): void {
    clearTimeout(this.#patience);
    this.listed = text;
  }

  /** Searches for these words, with the current filters. */
  async find(text: string): Promise<void> {
    const asked = ++this.#asked;
    clearTimeout(this.#patience);
    if (text.trim() === '') {
      this.listed = '';
      [this.hits, this.more, this.indexing, this.settled] = [[], false, false, true];
      return;
    }
    this.settled = false;
    this.#patience = setTimeout(() => this.list(text), PATIENCE);
    // The first letter is looked for at once; of those that are typed while the host looks, the last counts.
    await this.#running;
    if (asked !== this.#asked) return;
    const days = SPANS[this.span];
    const search = this.platform.searchHistory({
      text,
      model: this.model,
      since: days === null ? null : Date.now() - days * DAY,
      until: null,
      without_titles: true,
    });
    this.#running = search.catch(() => {});
    try {
      const found = await search;
      if (asked !== this.#asked) return;
      this.list(text);
      this.hits = found.hits.filter((hit) => hit.message !== null);
      [this.more, this.indexing, this.settled] = [found.more, found.indexing, true];
      this.toasts.settle('search');
    } catch (reason) {
      if (asked === this.#asked) this.toasts.report(reason, 'search');
    }
  }
}
