/** What the pictures of all chats take on the disk. */

import type { Platform } from '../platform';
import type { Toasts } from './toasts.svelte';

export class PictureStorage {
  /** In bytes; `null` until it was asked. */
  bytes = $state<number | null>(null);

  constructor(
    private readonly platform: Pick<Platform, 'pictureStorage'>,
    private readonly toasts: Toasts,
  ) {}

  async refresh(): Promise<void> {
    try {
      this.bytes = await this.platform.pictureStorage();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}
