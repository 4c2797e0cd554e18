/** The cost of images for a model: the tokens that each takes of its context, at each detail. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { ImageDetail } from '../bindings/ImageDetail';
import type { Platform } from '../host';

/** From the cheapest on. */
export const DETAILS: readonly ImageDetail[] = ['quick', 'normal', 'full'];

/** A picture's size, in pixels. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

export class ImageCosts {
  readonly #known = new SvelteMap<string, number>();

  constructor(private readonly platform: Pick<Platform, 'pictureTokens'>) {}

  /** The tokens that pictures of these sizes take together; `null` if that is not known of one. */
  sumOf(model: string | null, detail: ImageDetail, pictures: readonly PictureSize[]): number | null {
    let sum = 0;
    for (const picture of pictures) {
      const tokens = this.of(model, detail, picture);
      if (tokens === null) return null;
      sum += tokens;
    }
    return sum;
  }

  /** The tokens that a picture of this size takes; `null` until {@link ask} has learned it, and if nobody can say. */
  of(model: string | null, detail: ImageDetail, picture: PictureSize): number | null {
    return this.#known.get(key(model, detail, picture)) ?? null;
  }

  /** Learns what pictures of these sizes cost a model, at every detail. */
  async ask(model: string | null, pictures: readonly PictureSize[]): Promise<void> {
    for (const detail of DETAILS) {
      const unknown = pictures.filter((picture) => this.of(model, detail, picture) === null);
      if (unknown.length === 0) continue;
      // A model that is gone costs nothing; the question reports it.
      const tokens = await this.platform
        .pictureTokens(
          model,
          detail,
          unknown.map(({ width, height }) => [width, height]),
        )
        .catch(() => null);
      tokens?.forEach((count, index) => {
        const picture = unknown[index];
        if (picture) this.#known.set(key(model, detail, picture), count);
      });
    }
  }
}

function key(model: string | null, detail: ImageDetail, { width, height }: PictureSize): string {
  return `${model} ${detail} ${width}×${height}`;
}

/** The tokens that images take. */
export const [useImageCosts, provideImageCosts] = createContext<ImageCosts>();
