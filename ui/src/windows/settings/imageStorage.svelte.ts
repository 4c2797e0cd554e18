/** The disk space of the images of all chats. */

import { createContext } from 'svelte';

import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

export class ImageStorage {
  /** In bytes; `null` until it was read. */
  bytes = $state<number | null>(null);

  constructor(
    private readonly platform: Pick<Platform, 'imageStorage'>,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    await this.toasts.attempt(async () => (this.bytes = await this.platform.imageStorage()), 'images');
  }
}

/** The space that stored images take. */
export const [useImageStorage, provideImageStorage] = createContext<ImageStorage>();
