/** What is set for the whole app, the same in every window. */

import type { Settings } from '../bindings/Settings';
import type { Platform } from '../platform';
import type { Toasts } from './toasts.svelte';

export class AppSettings {
  /** `null` until it was read. */
  value = $state.raw<Settings | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Reads what is set, and hears of every change. */
  async open(): Promise<void> {
    try {
      await this.platform.onSettingsChanged((settings) => (this.value = settings));
      this.value = await this.platform.settings();
    } catch (reason) {
      this.toasts.report(reason);
    }
  }

  /** Sets some of it. */
  async change(change: Partial<Settings>): Promise<void> {
    try {
      this.value = await this.platform.changeSettings(change);
      this.toasts.settle('settings');
    } catch (reason) {
      this.toasts.report(reason, 'settings');
    }
  }

  async openWindow(): Promise<void> {
    try {
      await this.platform.openWindow('settings');
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}
