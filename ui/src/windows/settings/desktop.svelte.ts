/** The desktop features around the app that can be set. */

import { createContext } from 'svelte';

import type { Command } from '../../bindings/Command';
import type { Desktop } from '../../bindings/Desktop';
import type { Platform } from '../../host';
import type { Toasts } from '../../design/toasts.svelte';

export class DesktopState {
  /** `null` until it was read. */
  value = $state.raw<Desktop | null>(null);

  constructor(
    private readonly platform: Platform,
    private readonly toasts: Toasts,
  ) {}

  /** Asks, and asks again whenever the settings have changed. */
  async open(): Promise<void> {
    await this.platform.onSettingsChanged(() => void this.refresh());
    await this.refresh();
  }

  async refresh(): Promise<void> {
    try {
      this.value = await this.platform.desktop();
    } catch (reason) {
      this.toasts.report(reason, 'desktop');
    }
  }

  /** Opens the app at login from now on, or no longer. */
  async openAtLogin(on: boolean): Promise<void> {
    try {
      await this.platform.openAtLogin(on);
    } catch (reason) {
      this.toasts.report(reason);
    }
    await this.refresh();
  }

  async run(command: Command): Promise<void> {
    try {
      await this.platform.runCommand(command);
    } catch (reason) {
      this.toasts.report(reason);
    }
  }
}

/** The abilities of the desktop around the windows. */
export const [useDesktop, provideDesktop] = createContext<DesktopState>();
