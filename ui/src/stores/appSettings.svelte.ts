/** The settings of the app, the same in every window. */

import { createContext } from 'svelte';

import type { Appearance } from '../bindings/Appearance';
import type { Settings } from '../bindings/Settings';
import type { WindowPage } from '../bindings/WindowPage';
import { asHostError, type HostError, type Platform } from '../host';
import type { Toasts } from '../design/toasts.svelte';

export class AppSettings {
  /** `null` until it was read. */
  value = $state.raw<Settings | null>(null);
  #looked: Promise<void> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Reads the settings, and follows every change. */
  async open(): Promise<void> {
    await this.toasts.attempt(async () => {
      await this.platform.onSettingsChanged((settings) => (this.value = settings));
      this.value = await this.platform.settings();
    }, 'settings');
  }

  /** Sets some of it. */
  async change(change: Partial<Settings>): Promise<void> {
    const refused = await this.tryChange(change);
    if (refused) this.toasts.report(refused, 'settings');
  }

  /** Sets some of it; why that was refused, then nothing is changed. */
  async tryChange(change: Partial<Settings>): Promise<HostError | null> {
    try {
      this.value = await this.platform.changeSettings(change);
      this.toasts.settle('settings');
      return null;
    } catch (reason) {
      return asHostError(reason);
    }
  }

  /** Changes the look of all windows, one change after another, because each builds on the one before. */
  look(change: Partial<Appearance>): Promise<void> {
    this.#looked = this.#looked.then(async () => {
      if (this.value) await this.change({ appearance: { ...this.value.appearance, ...change } });
    });
    return this.#looked;
  }

  async openWindow(): Promise<void> {
    await this.toasts.attempt(() => this.platform.openWindow('settings'), 'window');
  }

  /** Opens the window of the settings at one of its pages, perhaps at a row of it. */
  async openPage(page: WindowPage, row: string | null = null): Promise<void> {
    await this.toasts.attempt(() => this.platform.showPage(page, row), 'window');
  }
}

/** The settings of the app. */
export const [useSettings, provideSettings] = createContext<AppSettings>();
