/**
 * RowHeights of a long list of which only those in sight are drawn. Each has the height that was measured, or one that
 * is guessed until it was drawn once.
 */

/** The margin beyond the view in which rows are rendered, in pixels, so that scrolling shows no gap. */
export const OVERSCAN = 800;

/** RowHeights that are drawn, from `first` up to but not including `end`. */
export interface Span {
  first: number;
  end: number;
}

export class RowHeights {
  #keys: readonly string[] = [];
  #index = new Map<string, number>();
  readonly #heights = new Map<string, number>();
  /** The offset of each row, and at the end the total height. */
  #tops: number[] = [0];
  /** Up to which row that was added up: a row that grows moves those below it alone. */
  #added = 0;
  #guess: (index: number) => number = () => 0;

  /**
   * Sets the rows; `guess` is the height of one that was never rendered. Returns the offset by which the row at `from`
   * moves, because rows above it came or went.
   */
  set(keys: readonly string[], guess: (index: number) => number, from = Infinity): number {
    const seen = Number.isFinite(from) ? this.#at(from) : this.#keys.length;
    const key = this.#keys[seen];
    const before = this.top(seen);
    this.#keys = keys;
    this.#guess = guess;
    this.#index = new Map(keys.map((key, index) => [key, index]));
    this.#added = 0;
    const now = key === undefined ? -1 : this.indexOf(key);
    return now < 0 ? 0 : this.top(now) - before;
  }

  /** The offset of a row; the index after the last row gives the total height. */
  top(index: number): number {
    const wanted = Math.min(index, this.#keys.length);
    for (; this.#added < wanted; this.#added++) {
      const height = this.#heights.get(this.#keys[this.#added] ?? '') ?? this.#guess(this.#added);
      this.#tops[this.#added + 1] = (this.#tops[this.#added] ?? 0) + height;
    }
    return this.#tops[wanted] ?? 0;
  }

  /** The height of all rows. */
  get total(): number {
    return this.top(this.#keys.length);
  }

  /** The place of a row; -1 if there is none. */
  indexOf(key: string): number {
    return this.#index.get(key) ?? -1;
  }

  /**
   * Records measured heights. Returns the offset by which the content at `from` moves, because rows above it changed.
   */
  measure(heights: Iterable<readonly [string, number]>, from: number): number {
    let moved = 0;
    let changed = this.#keys.length;
    // `from` is compared with the old offsets, so they are all read before a height changes.
    this.top(changed);
    for (const [key, height] of heights) {
      const index = this.indexOf(key);
      if (index < 0) continue;
      const before = this.top(index + 1) - this.top(index);
      if (Math.abs(before - height) < 0.5) {
        this.#heights.set(key, height);
        continue;
      }
      if (this.top(index) + before <= from) moved += height - before;
      this.#heights.set(key, height);
      changed = Math.min(changed, index);
    }
    this.#added = Math.min(this.#added, changed);
    return moved;
  }

  /** The rows in sight of a view that begins at `from`, and those within this distance of it. */
  span(from: number, height: number, reach = OVERSCAN): Span {
    const count = this.#keys.length;
    // A view beyond the end shows the end.
    const top = Math.max(0, Math.min(from, this.total - height));
    const first = Math.max(0, this.#at(top - reach));
    const end = Math.min(count, this.#at(top + height + reach) + 1);
    return { first, end };
  }

  /** The row that holds this place. */
  #at(place: number): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.top(middle + 1) <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
