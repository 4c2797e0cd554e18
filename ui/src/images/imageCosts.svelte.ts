/** The cost of images for a model: the tokens that each takes of its context, at each detail. */

import { createContext } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

import type { ImageDetail } from '../bindings/ImageDetail';
import type { Platform } from '../host';

/** From the cheapest on. */
export const DETAILS: readonly ImageDetail[] = ['quick', 'normal', 'full'];

/** An image's size, in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

export class ImageCosts {
  readonly #known = new SvelteMap<string, number>();

  constructor(private readonly platform: Pick<Platform, 'imageTokens'>) {}

  /** The tokens that images of these sizes take together; `null` if that is not known of one. */
  sumOf(model: string | null, detail: ImageDetail, images: readonly ImageSize[]): number | null {
    let sum = 0;
    for (const image of images) {
      const tokens = this.of(model, detail, image);
      if (tokens === null) return null;
      sum += tokens;
    }
    return sum;
  }

  /** The tokens that an image of this size takes; `null` until {@link ask} has learned it, and if nobody can say. */
  of(model: string | null, detail: ImageDetail, image: ImageSize): number | null {
    return this.#known.get(key(model, detail, image)) ?? null;
  }

  /** Learns what images of these sizes cost a model, at every detail. */
  async ask(model: string | null, images: readonly ImageSize[]): Promise<void> {
    for (const detail of DETAILS) {
      const unknown = images.filter((image) => this.of(model, detail, image) === null);
      if (unknown.length === 0) continue;
      // A model that is gone costs nothing; the question reports it.
      const tokens = await this.platform
        .imageTokens(
          model,
          detail,
          unknown.map(({ width, height }) => [width, height]),
        )
        .catch(() => null);
      tokens?.forEach((count, index) => {
        const image = unknown[index];
        if (image) this.#known.set(key(model, detail, image), count);
      });
    }
  }
}

function key(model: string | null, detail: ImageDetail, { width, height }: ImageSize): string {
  return `${model} ${detail} ${width}×${height}`;
}

/** The tokens that images take. */
export const [useImageCosts, provideImageCosts] = createContext<ImageCosts>();
