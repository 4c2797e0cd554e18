/** The tokens of a draft's text, counted by the host during pauses. */

import type { FileCosts } from '../../files/fileCosts.svelte';

/** The pause in typing before a count, in milliseconds. */
const REST = 400;

export class DraftTokens {
  /** `null` while that is not known. */
  tokens = $state<number | null>(null);
  #asked = 0;
  /** The model and the text that are counted, or were. */
  #watched: readonly [string | null, string] = [null, ''];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly costs: Pick<FileCosts, 'ofText'>) {}

  /** Counts this text under a model; the figure before it stays until then. */
  watch(model: string | null, text: string): void {
    if (this.#watched[0] === model && this.#watched[1] === text) return;
    this.#watched = [model, text];
    clearTimeout(this.#timer);
    const asked = ++this.#asked;
    if (text.trim() === '') {
      this.tokens = null;
      return;
    }
    this.#timer = setTimeout(() => {
      void this.costs.ofText(model, text).then((tokens) => {
        // A slower answer to an earlier question says nothing any more.
        if (asked === this.#asked) this.tokens = tokens;
      });
    }, REST);
  }
}
