/** The cost of documents and texts for a model, in tokens of its context. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { Excerpt } from '../bindings/Excerpt';
import type { FileContent } from '../shared/files';
import { partOf } from '../shared/files';
import { words } from '../shared/messageParts';
import type { Platform } from '../host';

/** The maximum number of attempts to shorten a part until it fits. */
const TRIES = 7;

/** The tokens that the answer has of a context. */
const ANSWER = 512;

/** The tokens of a context that a chat leaves for a question's files. */
export function freeTokens(context: number, used: number): number {
  return Math.max(0, context - used - Math.min(ANSWER, Math.floor(context / 4)));
}

export class FileCosts {
  readonly #known = new SvelteMap<string, number>();

  constructor(private readonly platform: Pick<Platform, 'contentTokens'>) {}

  /** The tokens of this part of a file; `null` until {@link ask} has counted it, and if that is unknown. */
  of(model: string | null, file: FileContent): number | null {
    return this.#known.get(key(model, file)) ?? null;
  }

  /** The tokens that these files take together; `null` if that is not known of one. */
  sumOf(model: string | null, files: readonly FileContent[]): number | null {
    let sum = 0;
    for (const file of files) {
      const tokens = this.of(model, file);
      if (tokens === null) return null;
      sum += tokens;
    }
    return sum;
  }

  /** Counts these files for a model. */
  async ask(model: string | null, files: readonly FileContent[]): Promise<void> {
    await Promise.all(files.map((file) => this.#count(model, file)));
  }

  /**
   * The longest part of a file, from where its part begins, that takes no more tokens than there is room for; `null` if
   * none does.
   */
  async fitting(model: string | null, file: FileContent, room: number): Promise<Excerpt | null> {
    const { excerpt } = file;
    if (!excerpt) return null;
    const { first, last } = excerpt;
    return this.#longest(model, file, room, last - first + 1, (length) => partOf(excerpt, first, first + length - 1));
  }

  /** The same of all parts with this page or line in them, which begin a little before it. */
  async around(model: string | null, file: FileContent, at: number, room: number): Promise<Excerpt | null> {
    const { excerpt } = file;
    if (!excerpt) return null;
    const { of } = excerpt;
    return this.#longest(model, file, room, of, (length) => {
      const first = Math.max(1, Math.min(at - Math.floor(length / 4), of - length + 1));
      return partOf(excerpt, first, first + length - 1);
    });
  }

  /** The longest part that fits, from this length down to a single page or line. */
  async #longest(
    model: string | null,
    file: FileContent,
    room: number,
    longest: number,
    partOfLength: (length: number) => Excerpt,
  ): Promise<Excerpt | null> {
    if (room <= 0) return null;
    let length = longest;
    for (let tries = 1; tries <= TRIES; tries++) {
      const part = partOfLength(length);
      const tokens = await this.#count(model, { ...file, excerpt: part });
      if (tokens === null) return null;
      if (tokens <= room) return part;
      if (length === 1) return null;
      // Pages differ in length, so that the share is a guess; at the end half of it is taken, and then a single one.
      const share = (tries + 2 < TRIES ? 0.98 : 0.5) * (room / tokens);
      length = tries + 1 < TRIES ? Math.max(1, Math.min(length - 1, Math.floor(length * share))) : 1;
    }
    return null;
  }

  /** The tokens of another part of a file; `null` if that is unknown. */
  ofPart(model: string | null, file: FileContent, excerpt: Excerpt): Promise<number | null> {
    return this.#count(model, { ...file, excerpt });
  }

  /** The tokens of a text; `null` if that is unknown. */
  async ofText(model: string | null, text: string): Promise<number | null> {
    if (text === '') return 0;
    return this.platform.contentTokens(model, words(text)).then(
      ({ tokens }) => tokens,
      () => null,
    );
  }

  async #count(model: string | null, file: FileContent): Promise<number | null> {
    const name = key(model, file);
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    // A model that is gone costs nothing; the question reports it.
    const counted = await this.platform.contentTokens(model, [file]).catch(() => null);
    if (counted) this.#known.set(name, counted.tokens);
    return counted?.tokens ?? null;
  }
}

function key(model: string | null, { attachment, name, excerpt }: FileContent): string {
  return `${model} ${attachment} ${excerpt ? `${excerpt.first}-${excerpt.last}` : ''} ${name}`;
}

/** The tokens that files take. */
export const [useFileCosts, provideFileCosts] = createContext<FileCosts>();
