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
    await this.toasts.attempt(async () => (this.value = await this.platform.desktop()), 'desktop');
  }

  /** Opens the app at login from now on, or no longer. */
  async openAtLogin(on: boolean): Promise<void> {
    await this.toasts.attempt(() => this.platform.openAtLogin(on), 'login');
    await this.refresh();
  }

  async run(command: Command): Promise<void> {
    await this.toasts.attempt(() => this.platform.runCommand(command), 'command');
  }
}

/** The abilities of the desktop around the windows. */
export const [useDesktop, provideDesktop] = createContext<DesktopState>();
