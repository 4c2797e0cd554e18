/** The contents of Discover: recommended first models until a search, then the hub's results. */

import { createContext } from 'svelte';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { HubModel } from '../../bindings/HubModel';
import type { SearchPage } from '../../bindings/SearchPage';
import type { SearchQuery } from '../../bindings/SearchQuery';
import type { Sort } from '../../bindings/Sort';
import { fittingFirst } from '../../format/fit';
import { asHostError, type HostError, type Platform } from '../../host';

/** The state of the list: recommendations, a running search, its models, or the reason for none. */
export type ListState = 'first' | 'loading' | 'models' | 'failed';

/** The pause in typing before a search starts, in milliseconds. */
export const SEARCH_DELAY = 400;
const DESCRIBE_AT_ONCE = 4;

export class Discover {
  text = $state('');
  sort = $state<Sort>('downloads');
  fitsOnly = $state(false);
  thinksOnly = $state(false);

  shown = $state<ListState>('first');
  /** `null` until they were read. */
  first = $state.raw<readonly HubModel[] | null>(null);
  /** The results of a search, page after page. */
  found = $state.raw<readonly HubModel[]>([]);
  /**
   * If the answer that is shown was cached: when the hub gave it, in milliseconds since 1970, and why it gives no newer
   * one.
   */
  cached = $state.raw<{ at: number; because: HostError } | null>(null);
  error = $state.raw<HostError | null>(null);
  /** The number of models that the filters removed. */
  leftOut = $state(0);
  /** True while the next page is on its way. */
  extending = $state(false);

  /** Details of single models that arrived after they were listed. */
  readonly #known = new SvelteMap<string, HubModel>();
  readonly #asking = new SvelteSet<string>();
  /** Models that the hub was asked about, successfully or not. */
  readonly #requested = new Set<string>();
  readonly #waiting: string[] = [];
  #describing = 0;
  #cursor = $state<string | null>(null);
  /** The number of further pages. A new end of the list is observed after each. */
  pages = $state(0);
  #asked = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly platform: Platform) {}

  /** Reads the first models; nothing leaves the computer for it. */
  async open(): Promise<void> {
    try {
      this.first = fittingFirst(await this.platform.firstModels());
    } catch (reason) {
      this.first = [];
      this.error = asHostError(reason);
    }
  }

  /** True if there is another page. */
  get more(): boolean {
    return this.#cursor !== null;
  }

  /** A model with all that is known of it. */
  latest(model: HubModel): HubModel {
    return this.#known.get(model.id) ?? model;
  }

  /** True while the hub is being asked about a model. */
  isAsking(id: string): boolean {
    return this.#asking.has(id);
  }

  /** Sets the typed text, and searches once typing pauses. */
  type(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    if (!text.trim()) {
      this.#asked += 1;
      this.shown = 'first';
      return;
    }
    this.#timer = setTimeout(() => void this.search(), SEARCH_DELAY);
  }

  /** Searches now; without a text for the most downloaded models. */
  async search(): Promise<void> {
    clearTimeout(this.#timer);
    const asked = ++this.#asked;
    this.shown = 'loading';
    this.error = null;
    this.#requested.clear();
    try {
      const page = await this.platform.searchModels(this.#query(null));
      if (asked !== this.#asked) return;
      this.found = page.models;
      this.#cursor = page.cursor;
      this.cached = cachedPart(page);
      this.leftOut = page.left_out;
      this.shown = 'models';
    } catch (reason) {
      if (asked !== this.#asked) return;
      this.error = asHostError(reason);
      this.shown = 'failed';
    }
  }

  /** Changes order or filters and searches, also if nothing was searched for yet. */
  choose(change: { sort?: Sort; fitsOnly?: boolean; thinksOnly?: boolean }): void {
    this.sort = change.sort ?? this.sort;
    this.fitsOnly = change.fitsOnly ?? this.fitsOnly;
    this.thinksOnly = change.thinksOnly ?? this.thinksOnly;
    void this.search();
  }

  /** Asks for the next page. After an error the list stays as it is; scrolling asks again. */
  async extend(): Promise<void> {
    const cursor = this.#cursor;
    if (cursor === null || this.extending || this.shown !== 'models') return;
    const asked = this.#asked;
    this.extending = true;
    this.error = null;
    try {
      const page = await this.platform.searchModels(this.#query(cursor));
      if (asked !== this.#asked) return;
      const known = new Set(this.found.map((model) => model.id));
      this.found = this.#ordered([...this.found, ...page.models.filter((model) => !known.has(model.id))]);
      this.#cursor = page.cursor;
      this.cached ??= cachedPart(page);
      this.leftOut += page.left_out;
      this.pages += 1;
    } catch (reason) {
      if (asked === this.#asked) this.error = asHostError(reason);
    } finally {
      this.extending = false;
    }
  }

  /** Every page comes in its own order; by size, the list is in one. */
  #ordered(models: readonly HubModel[]): readonly HubModel[] {
    if (this.sort !== 'size') return models;
    return models.toSorted((a, b) => (this.latest(a).bytes ?? Infinity) - (this.latest(b).bytes ?? Infinity));
  }

  /** Describes a model, a few at a time; rows call it when they come into view. */
  describe(model: HubModel): void {
    if (this.latest(model).described || this.#requested.has(model.id)) return;
    this.#requested.add(model.id);
    this.#asking.add(model.id);
    this.#waiting.push(model.id);
    void this.#describeNext();
  }

  async #describeNext(): Promise<void> {
    if (this.#describing >= DESCRIBE_AT_ONCE) return;
    const id = this.#waiting.shift();
    if (id === undefined) return;
    this.#describing += 1;
    try {
      this.#known.set(id, await this.platform.describeModel(id));
    } catch {
      // The row stays as the list gave it; a download reports the error.
    } finally {
      this.#asking.delete(id);
      this.#describing -= 1;
      void this.#describeNext();
    }
  }

  #query(cursor: string | null): SearchQuery {
    return {
      text: this.text.trim(),
      sort: this.sort,
      fits_only: this.fitsOnly,
      thinks_only: this.thinksOnly,
      author: null,
      quantization: null,
      cursor,
    };
  }
}

function cachedPart({ cached_at: at, cached_because: because }: SearchPage): { at: number; because: HostError } | null {
  return at !== null && because !== null ? { at, because } : null;
}

/** The models of the hub. */
export const [useDiscover, provideDiscover] = createContext<Discover>();
