/** What the pictures of all chats take on the disk. */

import type { PictureStorage as Storage } from '../bindings/PictureStorage';
import type { Platform } from '../platform';
import type { Toasts } from './toasts.svelte';

export class PictureStorage {
  /** `null` until it was asked. */
  value = $state.raw<Storage | null>(null);

  constructor(
    private readonly platform: Pick<Platform, 'pictureStorage'>,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    try {
      this.value = await this.platform.pictureStorage();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}
